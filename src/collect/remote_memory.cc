#include "collect/remote_memory.h"

#include <array>
#include <atomic>
#include <cerrno>

#include <sys/uio.h>

namespace spanprof::collect {

std::string_view ReadStatusText(ReadStatus status) {
  switch (status) {
    case ReadStatus::kOk:
      return "read";
    case ReadStatus::kNotPermitted:
      return "not permitted";
    case ReadStatus::kNoSuchProcess:
      return "no such process";
    case ReadStatus::kBadAddress:
      return "bad address";
    case ReadStatus::kPartial:
      return "only a part can be read";
    case ReadStatus::kFailed:
      break;
  }
  return "failed";
}

ReadStatus MemoryReader::Read(uint64_t address, std::span<std::byte> to) {
  const MemoryRange range{address, to};
  return ReadVectors({&range, 1});
}

ReadStatus MemoryReader::ReadInOrder(std::span<const MemoryRange> ranges) {
#if defined(__x86_64__)
  return ReadVectors(ranges);
#else
  for (const MemoryRange& range : ranges) {
    const ReadStatus status = ReadVectors({&range, 1});
    if (status != ReadStatus::kOk) return status;
    // Pairs with the publisher's release fence and release store of the word, or of the stamp.
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  return ReadStatus::kOk;
#endif
}

ReadStatus ProcessMemory::ReadVectors(std::span<const MemoryRange> ranges) {
  if (ranges.size() > kMaxRanges) {
    error_number_ = EINVAL;
    return ReadStatus::kFailed;
  }
  std::array<iovec, kMaxRanges> local;
  std::array<iovec, kMaxRanges> remote;
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    local[i] = {ranges[i].to.data(), ranges[i].to.size()};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the address is another process's
    remote[i] = {reinterpret_cast<void*>(ranges[i].address), ranges[i].to.size()};
    wanted += ranges[i].to.size();
  }
  const ssize_t got =
      process_vm_readv(pid_, local.data(), ranges.size(), remote.data(), ranges.size(), 0);
  if (got >= 0 && static_cast<std::size_t>(got) == wanted) return ReadStatus::kOk;
  if (got >= 0) {
    error_number_ = EFAULT;
    return ReadStatus::kPartial;
  }
  error_number_ = errno;
  switch (errno) {
    case EPERM:
      return ReadStatus::kNotPermitted;
    case ESRCH:
      return ReadStatus::kNoSuchProcess;
    case EFAULT:
      return ReadStatus::kBadAddress;
    default:
      return ReadStatus::kFailed;
  }
}

}  // namespace spanprof::collect
