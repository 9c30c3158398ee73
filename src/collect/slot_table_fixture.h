#pragma once

// A slot table in fake memory, for tests: a publisher that can be stopped between any two of its
// stores.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "collect/fake_memory.h"
#include "collect/process_maps.h"
#include <spanprof/internal/records.hpp>

namespace spanprof::collect {

inline constexpr uint64_t kFakeTableAddress = 0x7f0000000000;
inline constexpr uint64_t kFakeRecordAddress = 0x500000000000;
inline constexpr uint32_t kFakePid = 4242;

struct FakeTableOptions {
  uint32_t capacity = 64;
  uint32_t features = internal::kFeatureSequencedWord | internal::kFeatureRecordPointers;
  uint32_t publisher_pid = kFakePid;
  std::string name = "/memfd:DD_OTEL_CTX (deleted)";
};

class FakePublisher {
 public:
  FakePublisher(FakeMemory& memory, const FakeTableOptions& options,
                uint64_t at = kFakeTableAddress)
      : memory_(memory), options_(options), address_(at) {
    memory_.AddZeros(address_, MappingBytes());
    Store32(offsetof(internal::SlotTableHeader, magic), internal::kSlotTableMagic);
    Store32(offsetof(internal::SlotTableHeader, version), internal::kSlotTableVersion);
    Store32(offsetof(internal::SlotTableHeader, capacity), options.capacity);
    Store32(offsetof(internal::SlotTableHeader, slot_size), sizeof(internal::Slot));
    if (options.features == 0) return;
    Store32(offsetof(internal::SlotTableHeader, features), options.features);
    Store32(offsetof(internal::SlotTableHeader, publisher_pid), options.publisher_pid);
    if ((options.features & internal::kFeatureRecordPointers) != 0) {
      Store32(offsetof(internal::SlotTableHeader, record_pointers_offset),
              static_cast<uint32_t>(internal::SlotTableRecordPointersOffset(options.capacity)));
    }
  }

  [[nodiscard]] std::size_t MappingBytes() const {
    return (internal::SlotTableBytes(options_.capacity) + 4095) / 4096 * 4096;
  }
  [[nodiscard]] uint64_t SlotAddress(uint32_t tid) const {
    return address_ + sizeof(internal::SlotTableHeader) +
           uint64_t{tid % options_.capacity} * sizeof(internal::Slot);
  }
  [[nodiscard]] uint64_t PointerAddress(uint32_t tid) const {
    return address_ + internal::SlotTableRecordPointersOffset(options_.capacity) +
           uint64_t{tid % options_.capacity} * 8;
  }
  [[nodiscard]] std::string MapsLine() const {
    char line[64];
    std::snprintf(line, sizeof(line), "%lx-%lx rw-p 00000000 00:01 %d                ", address_,
                  address_ + MappingBytes(), options_.name.empty() ? 0 : 9);
    return line + options_.name + "\n";
  }

  void Store32(std::size_t offset, uint32_t value) { memory_.Store(address_ + offset, value); }
  void SetWord(uint32_t tid, uint32_t owner, uint32_t sequence) {
    const uint64_t word = (uint64_t{sequence} << 32) | (uint64_t{owner} << 8) | (sequence & 1);
    memory_.Store(SlotAddress(tid) + offsetof(internal::Slot, word), word);
  }
  void SetIds(uint32_t tid, uint64_t trace_high, uint64_t trace_low, uint64_t span) {
    memory_.Store(SlotAddress(tid), trace_high);
    memory_.Store(SlotAddress(tid) + 8, trace_low);
    memory_.Store(SlotAddress(tid) + 16, span);
  }
  void SetPointer(uint32_t tid, uint64_t record) { memory_.Store(PointerAddress(tid), record); }

  // An OTEP record of its own page, with these attribute entries.
  uint64_t AddRecord(uint32_t tid, uint64_t trace_high, uint64_t trace_low, uint64_t span,
                     const std::string& entries, unsigned valid = 1) {
    const uint64_t at = kFakeRecordAddress + uint64_t{tid} * 4096;
    memory_.AddZeros(at, internal::kOtelRecordBytes);
    memory_.Store(at, __builtin_bswap64(trace_high));
    memory_.Store(at + 8, __builtin_bswap64(trace_low));
    memory_.Store(at + internal::kOtelSpanIdOffset, __builtin_bswap64(span));
    memory_.Store(at + internal::kOtelValidOffset,
                  internal::OtelRecordState(valid, 0, static_cast<uint32_t>(entries.size())));
    const auto to = memory_.Find(at + internal::kOtelAttributesOffset, entries.size());
    if (!entries.empty()) std::memcpy(to.data(), entries.data(), entries.size());
    SetPointer(tid, at);
    return at;
  }

 private:
  FakeMemory& memory_;
  FakeTableOptions options_;
  uint64_t address_;
};

inline std::string OtelEntry(unsigned key, const std::string& value) {
  return std::string{static_cast<char>(key), static_cast<char>(value.size())} + value;
}

}  // namespace spanprof::collect
