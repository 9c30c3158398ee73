#pragma once

// Reading the memory of another process, which may end, unmap or change it at any time.
//
//   ProcessMemory memory(pid);
//   ReadStatus status = memory.ReadInOrder({{{word_address, word}, {slot_address, slot}}});
//
// A read is exact or fails: nothing that was read is to be used unless the status is kOk.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <sys/types.h>

namespace spanprof::collect {

enum class [[nodiscard]] ReadStatus {
  kOk,
  kNotPermitted,   // EPERM: another user's process, or ptrace_scope
  kNoSuchProcess,  // ESRCH
  kBadAddress,     // EFAULT: nothing was read
  kPartial,        // the first ranges or bytes were read, then came a bad address
  kFailed,         // anything else; see error_number()
};

[[nodiscard]] std::string_view ReadStatusText(ReadStatus status);

struct MemoryRange {
  uint64_t address = 0;
  std::span<std::byte> to;
};

class MemoryReader {
 public:
  static constexpr std::size_t kMaxRanges = 256;

  virtual ~MemoryReader() = default;

  // Reads all ranges (at most kMaxRanges) by one call, in the given order. On machines that reorder
  // loads, nothing orders the copies within the call.
  virtual ReadStatus ReadVectors(std::span<const MemoryRange> ranges) = 0;

  ReadStatus Read(uint64_t address, std::span<std::byte> to);

  // Reads each range after the one before it, in the sense of an acquire fence between the two: one
  // call on x86-64, where loads keep their order, elsewhere a call a range.
  ReadStatus ReadInOrder(std::span<const MemoryRange> ranges);
};

// The memory of a live process, by process_vm_readv.
class ProcessMemory final : public MemoryReader {
 public:
  explicit ProcessMemory(pid_t pid) : pid_(pid) {}

  ReadStatus ReadVectors(std::span<const MemoryRange> ranges) override;

  // errno of the last read that failed.
  [[nodiscard]] int error_number() const { return error_number_; }

 private:
  pid_t pid_;
  int error_number_ = 0;
};

}  // namespace spanprof::collect
