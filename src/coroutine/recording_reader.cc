// Reads recordings, which anybody may have written: every length and count is checked.

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <system_error>
#include <unistd.h>

#include "base/printable_text.h"
#include "coroutine/byte_codec.h"
#include "coroutine/recording.h"
#include "coroutine/recording_block.h"

namespace spanprof::coroutine {
namespace {

constexpr uint64_t kMaxCounters = 100'000;
constexpr uint64_t kMaxSlotEvents = 1u << 20;

// A number that must fit 32 bits; otherwise `bad` is set.
uint32_t Narrow(uint64_t value, bool& bad) {
  if (value > std::numeric_limits<uint32_t>::max()) bad = true;
  return static_cast<uint32_t>(value);
}

bool ParseTarget(ByteReader& reader, RecordingVisitor& visitor) {
  bool bad = false;
  TargetInfo target;
  target.target = Narrow(reader.Number(), bad);
  target.pid = Narrow(reader.Number(), bad);
  target.start_ticks = reader.Number();
  target.clock_kind = Narrow(reader.Number(), bad);
  target.name = reader.Text();
  if (bad || reader.failed()) return false;
  visitor.OnTarget(target);
  return true;
}

bool ParseClock(ByteReader& reader, RecordingVisitor& visitor) {
  bool bad = false;
  ClockPair clock;
  clock.target = Narrow(reader.Number(), bad);
  clock.counter = reader.Number();
  clock.nanoseconds = reader.Number();
  if (bad || reader.failed()) return false;
  visitor.OnClock(clock);
  return true;
}

bool ParseEventBlock(std::string_view payload, RecordingVisitor& visitor) {
  ByteReader reader(payload);
  bool bad = false;
  EventBlock block;
  block.target = Narrow(reader.Number(), bad);
  block.ring = Narrow(reader.Number(), bad);
  block.tid = Narrow(reader.Number(), bad);
  block.first = reader.Number();
  const uint64_t count = reader.Number();
  if (bad || reader.failed()) return false;
  const std::string_view events = payload.substr(payload.size() - reader.left());
  if (!ParseEvents(events, count, block.events)) return false;
  visitor.OnEvents(block);
  return true;
}

bool ParseCoroutine(ByteReader& reader, RecordingVisitor& visitor) {
  bool bad = false;
  CoroutineInfo coroutine;
  coroutine.target = Narrow(reader.Number(), bad);
  coroutine.station = Narrow(reader.Number(), bad);
  coroutine.generation = Narrow(reader.Number(), bad);
  coroutine.probe_id = reader.Number();
  coroutine.birth_nanoseconds = reader.Number();
  coroutine.frame = reader.Number();
  coroutine.resume_function = reader.Number();
  coroutine.adopted = reader.Number() != 0;
  coroutine.name = reader.Text();
  if (bad || reader.failed()) return false;
  visitor.OnCoroutine(coroutine);
  return true;
}

bool ParsePlace(ByteReader& reader, RecordingVisitor& visitor) {
  bool bad = false;
  PlaceInfo place;
  place.target = Narrow(reader.Number(), bad);
  place.place = Narrow(reader.Number(), bad);
  place.line = Narrow(reader.Number(), bad);
  place.column = Narrow(reader.Number(), bad);
  place.file = reader.Text();
  place.function = reader.Text();
  if (bad || reader.failed()) return false;
  visitor.OnPlace(place);
  return true;
}

bool ParsePass(ByteReader& reader, RecordingVisitor& visitor) {
  bool bad = false;
  PassMark pass;
  pass.target = Narrow(reader.Number(), bad);
  pass.stamp = reader.Number();
  if (bad || reader.failed()) return false;
  visitor.OnPass(pass);
  return true;
}

bool ParseCounters(ByteReader& reader, RecordingVisitor& visitor) {
  bool bad = false;
  Counters counters;
  counters.target = Narrow(reader.Number(), bad);
  const uint64_t count = reader.Number();
  if (count > kMaxCounters) return false;
  for (uint64_t i = 0; i < count && !reader.failed(); ++i) {
    const std::string name(reader.Text());
    counters.values[name] = reader.Number();
  }
  if (bad || reader.failed()) return false;
  visitor.OnCounters(counters);
  return true;
}

bool ParseSlotEvents(ByteReader& reader, RecordingVisitor& visitor) {
  bool bad = false;
  const uint64_t count = reader.Number();
  if (count > kMaxSlotEvents) return false;
  for (uint64_t i = 0; i < count; ++i) {
    SlotEventInfo event;
    event.target = Narrow(reader.Number(), bad);
    event.station = Narrow(reader.Number(), bad);
    event.probe_id = reader.Number();
    event.number = reader.Number();
    event.nanoseconds = reader.Number();
    event.tid = reader.Number();
    event.addr = reader.Number();
    event.active = reader.Number() != 0;
    if (bad || reader.failed()) return false;
    visitor.OnSlotEvent(event);
  }
  return true;
}

enum class Outcome { kDone, kUnknown, kMalformed };

Outcome ParseBlock(uint32_t type, std::string_view payload, RecordingVisitor& visitor) {
  ByteReader reader(payload);
  bool good = false;
  switch (static_cast<BlockType>(type)) {
    case BlockType::kTarget:
      good = ParseTarget(reader, visitor);
      break;
    case BlockType::kClock:
      good = ParseClock(reader, visitor);
      break;
    case BlockType::kEvents:
      good = ParseEventBlock(payload, visitor);
      break;
    case BlockType::kCoroutine:
      good = ParseCoroutine(reader, visitor);
      break;
    case BlockType::kPlace:
      good = ParsePlace(reader, visitor);
      break;
    case BlockType::kPass:
      good = ParsePass(reader, visitor);
      break;
    case BlockType::kCounters:
      good = ParseCounters(reader, visitor);
      break;
    case BlockType::kSlotEvents:
      good = ParseSlotEvents(reader, visitor);
      break;
    case BlockType::kEnd:
      good = payload.empty();
      break;
    default:
      return Outcome::kUnknown;
  }
  return good ? Outcome::kDone : Outcome::kMalformed;
}

// Takes the bytes as they come and keeps no more than one block.
class BlockSplitter {
 public:
  explicit BlockSplitter(RecordingVisitor& visitor) : visitor_(&visitor) {}

  // False: these bytes are no recording.
  bool Begin(std::string_view magic) const {
    return magic == std::string_view(kRecordingMagic, kRecordingMagicBytes);
  }

  void Take(std::string_view bytes) {
    if (lost_) return;
    waiting_.append(bytes);
    std::string_view left = waiting_;
    while (left.size() >= sizeof(BlockHead)) {
      BlockHead head = {};
      std::memcpy(&head, left.data(), sizeof head);
      if (head.check != BlockCheck(head.type, head.length) || head.length > kMaxBlockBytes) {
        // Where the next block begins is not known any more.
        ++summary_.malformed_blocks;
        lost_ = true;
        return;
      }
      if (left.size() - sizeof head < head.length) break;
      const Outcome outcome =
          ParseBlock(head.type, left.substr(sizeof head, head.length), *visitor_);
      left.remove_prefix(sizeof head + head.length);
      ++summary_.blocks;
      summary_.malformed_blocks += outcome == Outcome::kMalformed ? 1 : 0;
      summary_.unknown_blocks += outcome == Outcome::kUnknown ? 1 : 0;
      summary_.complete = head.type == static_cast<uint32_t>(BlockType::kEnd);
    }
    waiting_.erase(0, waiting_.size() - left.size());
  }

  ReadSummary Finish() {
    summary_.cut_off = lost_ || !waiting_.empty();
    return summary_;
  }

 private:
  RecordingVisitor* visitor_;
  std::string waiting_;
  ReadSummary summary_;
  bool lost_ = false;
};

Error NotARecording() {
  return {EINVAL, "this is not a coroutine recording: it does not begin with SPNCORO1",
          "make one with `spanprof coro record`"};
}

}  // namespace

bool ReadBlock(std::string_view block, RecordingVisitor& visitor) {
  BlockHead head = {};
  if (block.size() < sizeof head) return false;
  std::memcpy(&head, block.data(), sizeof head);
  if (head.length != block.size() - sizeof head) return false;
  return ParseBlock(head.type, block.substr(sizeof head), visitor) == Outcome::kDone;
}

Result<ReadSummary> ReadRecording(std::string_view bytes, RecordingVisitor& visitor) {
  BlockSplitter splitter(visitor);
  if (!splitter.Begin(bytes.substr(0, kRecordingMagicBytes))) {
    return tl::make_unexpected(NotARecording());
  }
  splitter.Take(bytes.substr(kRecordingMagicBytes));
  return splitter.Finish();
}

Result<ReadSummary> ReadRecordingFile(const std::string& path, RecordingVisitor& visitor) {
  constexpr std::size_t kReadBytes = std::size_t{1} << 20;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes(kReadBytes, '\0');
  BlockSplitter splitter(visitor);
  std::string magic;
  for (;;) {
    const ssize_t got = file.valid() ? read(file.get(), bytes.data(), bytes.size()) : -1;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return Fail(errno, "the recording " + Quoted(path) +
                             " cannot be read: " + std::generic_category().message(errno));
    }
    if (got == 0) break;
    std::string_view fresh(bytes.data(), static_cast<std::size_t>(got));
    if (magic.size() < kRecordingMagicBytes) {
      const std::string_view first = fresh.substr(0, kRecordingMagicBytes - magic.size());
      magic.append(first);
      fresh.remove_prefix(first.size());
      if (magic.size() == kRecordingMagicBytes && !splitter.Begin(magic)) break;
    }
    splitter.Take(fresh);
  }
  if (!splitter.Begin(magic)) {
    Error error = NotARecording();
    error.message = Quoted(path) + ": " + error.message;
    return tl::make_unexpected(std::move(error));
  }
  return splitter.Finish();
}

}  // namespace spanprof::coroutine
