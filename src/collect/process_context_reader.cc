#include "collect/process_context_reader.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sched.h>
#include <span>
#include <string>
#include <utility>

#include <spanprof/internal/records.hpp>

namespace spanprof::collect {
namespace {

using internal::ProcessContextHeader;

constexpr std::size_t kMaxNamedContexts = 16;
constexpr uint64_t kStampOffset = offsetof(ProcessContextHeader, published_at_ns);

template <class T>
T Load(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

tl::unexpected<Error> ReadFailure(ReadStatus status) {
  const std::string message =
      "the process context cannot be read: " + std::string(ReadStatusText(status));
  if (status == ReadStatus::kNotPermitted) return Fail(EPERM, message);
  if (status == ReadStatus::kNoSuchProcess) return Fail(ESRCH, message);
  return Fail(EFAULT, message);
}

// One attempt. EAGAIN: it is being changed.
Result<std::string> TryReadPayload(MemoryReader& memory, uint64_t address) {
  uint64_t stamp = 0;
  std::array<std::byte, sizeof(ProcessContextHeader)> header{};
  const auto stamp_bytes = std::as_writable_bytes(std::span(&stamp, 1));
  const MemoryRange opening[] = {{address + kStampOffset, stamp_bytes}, {address, header}};
  ReadStatus status = memory.ReadInOrder(opening);
  if (status != ReadStatus::kOk) return ReadFailure(status);

  if (std::memcmp(header.data(), internal::kProcessContextSignature,
                  sizeof(internal::kProcessContextSignature)) != 0) {
    return Fail(EBADMSG, "the process context has no signature");
  }
  const auto version = Load<uint32_t>(header, offsetof(ProcessContextHeader, version));
  if (version != internal::kProcessContextVersion) {
    return Fail(EPROTONOSUPPORT, "the process context has version " + std::to_string(version) +
                                     ", this reader knows " +
                                     std::to_string(internal::kProcessContextVersion));
  }
  const auto being_changed = [] { return Fail(EAGAIN, "the process context is being changed"); };
  if (stamp == 0 || Load<uint64_t>(header, kStampOffset) != stamp) return being_changed();
  const auto size = Load<uint32_t>(header, offsetof(ProcessContextHeader, payload_size));
  if (size > kMaxProcessContextBytes) {
    return Fail(EFBIG, "the process context announces " + std::to_string(size) +
                           " bytes, more than " + std::to_string(kMaxProcessContextBytes));
  }
  const auto payload_address = Load<uint64_t>(header, offsetof(ProcessContextHeader, payload));

  std::string payload(size, '\0');
  uint64_t stamp_after = 0;
  const MemoryRange closing[] = {
      {payload_address, std::as_writable_bytes(std::span(payload))},
      {address + kStampOffset, std::as_writable_bytes(std::span(&stamp_after, 1))}};
  status = memory.ReadInOrder(std::span(closing).last(size == 0 ? 1 : 2));
  const bool bad_payload = status == ReadStatus::kBadAddress || status == ReadStatus::kPartial;
  if (bad_payload) {
    // The payload may have been replaced and freed since. Then the stamp says so.
    const ReadStatus again = memory.ReadInOrder(std::span(closing).last(1));
    if (again == ReadStatus::kOk && stamp_after != stamp) return being_changed();
  }
  if (status != ReadStatus::kOk) return ReadFailure(status);
  if (stamp_after != stamp) return being_changed();
  return payload;
}

Result<ProcessContext> ReadAt(MemoryReader& memory, uint64_t address) {
  Result<std::string> payload = Fail(EAGAIN, "");
  for (unsigned attempt = 0; attempt < kProcessContextAttempts; ++attempt) {
    if (attempt != 0) sched_yield();
    payload = TryReadPayload(memory, address);
    if (payload || payload.error().code != EAGAIN) break;
  }
  if (!payload) return tl::make_unexpected(std::move(payload.error()));
  return ParseProcessContext(*payload);
}

}  // namespace

ProcessContextReading ReadProcessContext(MemoryReader& memory, const ProcessMaps& maps) {
  ProcessContextReading reading;
  std::size_t tried = 0;
  for (const Mapping& mapping : maps.mappings) {
    if (tried == kMaxNamedContexts) break;
    const bool candidate = mapping.readable && mapping.size() >= sizeof(ProcessContextHeader) &&
                           HasPublishedName(mapping, internal::kProcessContextName);
    if (!candidate) continue;
    ++tried;
    reading.found = true;
    reading.context = ReadAt(memory, mapping.start);
    if (reading.context) break;
    if (reading.context.error().code == EPERM || reading.context.error().code == ESRCH) break;
  }
  return reading;
}

}  // namespace spanprof::collect
