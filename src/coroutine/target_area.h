#pragma once

// A harvester's view of the memory that a probe of ours publishes: the memfd SPANPROF_CORO. The
// target may write anything into it at any time, so sizes and offsets are taken once and checked,
// counts are checked each time, and the memory is mapped only if the kernel guarantees that it
// never becomes shorter. Not thread-safe.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {

// Part of a file, mapped; unmapped at the end.
class MappedRange {
 public:
  MappedRange() = default;
  MappedRange(MappedRange&& other) noexcept;
  MappedRange& operator=(MappedRange&& other) noexcept;
  ~MappedRange();

  // Not valid on failure, with errno.
  [[nodiscard]] static MappedRange Map(int file, uint64_t offset, uint64_t bytes, bool writable);
  [[nodiscard]] bool valid() const { return memory_ != nullptr; }
  [[nodiscard]] char* get() const { return memory_; }

 private:
  char* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

struct RingView {
  MappedRange memory;
  uint64_t tail = 0;

  [[nodiscard]] internal::coroutine::RingControl& control() const {
    return *reinterpret_cast<internal::coroutine::RingControl*>(memory.get());
  }
  [[nodiscard]] const internal::coroutine::Record* records() const {
    return reinterpret_cast<const internal::coroutine::Record*>(
        memory.get() + internal::coroutine::kRingControlBytes);
  }
};

class TargetArea {
 public:
  // Of an open memfd, as a target handed it over or as it was found in /proc.
  [[nodiscard]] static Result<TargetArea> Open(UniqueFd file);
  // Those of a process: one, usually; more if libraries in it keep their state to themselves.
  // Fails with ENOENT if there is none.
  [[nodiscard]] static Result<std::vector<TargetArea>> FindInProcess(pid_t pid);

  // Becomes the one harvester of this area; it is given up when this object or process ends.
  // Fails with EBUSY if there is another one.
  [[nodiscard]] Result<void> Claim();
  // Says where to wake us, and asks for events.
  void Announce(uint32_t pid, const std::string& socket_path, bool fence);
  // No more events are wanted.
  void Withdraw();

  [[nodiscard]] internal::coroutine::GlobalHeader& header() const { return *header_; }
  [[nodiscard]] uint32_t ring_records() const { return ring_records_; }
  // Rings that have been made so far. Maps new ones.
  [[nodiscard]] std::vector<RingView>& Rings();
  // Lets another thread have the ring of one that has ended. Its memory goes back to the system.
  void FreeRing(uint32_t index);
  // Null if there is no such station.
  [[nodiscard]] internal::coroutine::StationData* Station(uint32_t index);
  [[nodiscard]] uint32_t StationCount() const;
  // A copy; nothing if there is no such place.
  [[nodiscard]] std::optional<internal::coroutine::Place> ReadPlace(uint32_t id);
  [[nodiscard]] uint32_t PlaceCount() const;

 private:
  TargetArea(UniqueFd file, MappedRange page);
  [[nodiscard]] uint64_t FileBytes() const;

  UniqueFd file_;
  MappedRange page_;
  internal::coroutine::GlobalHeader* header_;
  uint32_t ring_records_ = 0;
  std::vector<RingView> rings_;
  std::map<uint32_t, MappedRange> chunks_;
  MappedRange places_;
};

}  // namespace spanprof::coroutine
