#pragma once

// A coroutine recording: what a harvester writes and what reports are made of. A file of blocks,
// each whole in itself, so that one cut off by a crash is readable up to its last whole block.
//
//   magic "SPNCORO1", then blocks of {u32 type, u32 length, u32 check, payload}
//
// docs/coroutines.md describes the payloads.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "coroutine/event_chunk.h"

namespace spanprof::coroutine {

inline constexpr char kRecordingMagic[] = "SPNCORO1";
inline constexpr std::size_t kRecordingMagicBytes = 8;
inline constexpr uint32_t kMaxBlockBytes = 32u << 20;

enum class BlockType : uint32_t {
  kTarget = 1,
  kClock = 2,
  kEvents = 3,
  kCoroutine = 4,
  kPlace = 5,
  kCounters = 6,
  kSlotEvents = 7,
  kEnd = 8,
  kPass = 9,
};

struct TargetInfo {
  uint32_t target = 0;  // a number of this recording
  uint32_t pid = 0;
  uint64_t start_ticks = 0;
  uint32_t clock_kind = 0;
  std::string name;

  friend bool operator==(const TargetInfo&, const TargetInfo&) = default;
};

struct ClockPair {
  uint32_t target = 0;
  uint64_t counter = 0;
  uint64_t nanoseconds = 0;
};

struct EventBlock {
  uint32_t target = 0;
  uint32_t ring = 0;
  uint32_t tid = 0;
  uint64_t first = 0;  // position in the ring since its beginning
  std::vector<RingEvent> events;
};

struct CoroutineInfo {
  uint32_t target = 0;
  uint32_t station = 0;
  uint32_t generation = 0;
  uint64_t probe_id = 0;
  uint64_t birth_nanoseconds = 0;
  uint64_t frame = 0;
  uint64_t resume_function = 0;
  bool adopted = false;
  std::string name;

  friend bool operator==(const CoroutineInfo&, const CoroutineInfo&) = default;
};

struct PlaceInfo {
  uint32_t target = 0;
  uint32_t place = 0;
  uint32_t line = 0;
  uint32_t column = 0;
  std::string file;
  std::string function;
};

// All rings of the target have been read up to what they held at this time, and what they held is
// in the blocks before.
struct PassMark {
  uint32_t target = 0;
  uint64_t stamp = 0;
};

// Everything that was dropped, and what the target says that it wrote, by name.
struct Counters {
  uint32_t target = 0;
  std::map<std::string, uint64_t> values;
};

struct SlotEventInfo {
  uint32_t target = 0;
  uint32_t station = 0;
  uint64_t probe_id = 0;
  uint64_t number = 0;
  uint64_t nanoseconds = 0;
  uint64_t tid = 0;
  uint64_t addr = 0;
  bool active = false;
};

// Where blocks go.
class BlockSink {
 public:
  virtual ~BlockSink() = default;
  // One block, with its head.
  [[nodiscard]] virtual Result<void> Take(BlockType type, std::string_view block) = 0;
};

// Writes blocks to a new file, mode 0600; an existing name or a symbolic link is refused. Every
// block that Write has returned from survives the death of this process.
class RecordingWriter {
 public:
  [[nodiscard]] static Result<RecordingWriter> Create(const std::string& path);
  // For an open file, a pipe say.
  [[nodiscard]] static Result<RecordingWriter> Open(UniqueFd file, std::string name);
  // Hands blocks to something else, without the magic in front of them.
  explicit RecordingWriter(std::unique_ptr<BlockSink> sink) : sink_(std::move(sink)) {}

  [[nodiscard]] Result<void> Write(const TargetInfo& target);
  [[nodiscard]] Result<void> Write(const ClockPair& clock);
  [[nodiscard]] Result<void> Write(const CoroutineInfo& coroutine);
  [[nodiscard]] Result<void> Write(const PlaceInfo& place);
  [[nodiscard]] Result<void> Write(const PassMark& pass);
  [[nodiscard]] Result<void> Write(const Counters& counters);
  [[nodiscard]] Result<void> Write(const std::vector<SlotEventInfo>& events);
  [[nodiscard]] Result<void> WriteEvents(uint32_t target, uint32_t ring, uint32_t tid,
                                         uint64_t first, std::span<const RingEvent> events);
  [[nodiscard]] Result<void> WriteEnd();

  // A whole block, as a sink got it.
  [[nodiscard]] Result<void> WriteBlock(BlockType type, std::string_view block);

  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  void Begin();
  [[nodiscard]] Result<void> End(BlockType type);

  std::unique_ptr<BlockSink> sink_;
  std::string block_;         // head and payload
  std::vector<char> events_;  // the same, for events: never cleared, as that would take long
  uint64_t bytes_ = 0;
};

// What a reader does with the blocks of a recording, in the order of the file.
class RecordingVisitor {
 public:
  virtual ~RecordingVisitor() = default;
  virtual void OnTarget(const TargetInfo&) {}
  virtual void OnClock(const ClockPair&) {}
  virtual void OnEvents(const EventBlock&) {}
  virtual void OnCoroutine(const CoroutineInfo&) {}
  virtual void OnPlace(const PlaceInfo&) {}
  virtual void OnPass(const PassMark&) {}
  virtual void OnCounters(const Counters&) {}
  virtual void OnSlotEvent(const SlotEventInfo&) {}
};

struct ReadSummary {
  uint64_t blocks = 0;
  uint64_t malformed_blocks = 0;  // skipped
  uint64_t unknown_blocks = 0;    // of a later version; skipped
  bool complete = false;          // it has its end
  bool cut_off = false;           // the last block is not whole
};

// One block, with its head, as a sink got it. False: it is not one.
[[nodiscard]] bool ReadBlock(std::string_view block, RecordingVisitor& visitor);

// Fails if the bytes are no recording at all.
[[nodiscard]] Result<ReadSummary> ReadRecording(std::string_view bytes, RecordingVisitor& visitor);
[[nodiscard]] Result<ReadSummary> ReadRecordingFile(const std::string& path,
                                                    RecordingVisitor& visitor);

}  // namespace spanprof::coroutine
