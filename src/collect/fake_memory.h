#pragma once

// Another process's memory for tests and fuzzers: pieces at given addresses, and a hook that lets a
// test change them between any two copies, as a running writer would.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "collect/remote_memory.h"

namespace spanprof::collect {

class FakeMemory final : public MemoryReader {
 public:
  // Pieces must not overlap or wrap round.
  std::span<std::byte> Add(uint64_t address, std::vector<std::byte> bytes) {
    auto& piece = pieces_[address] = std::move(bytes);
    return piece;
  }
  std::span<std::byte> AddZeros(uint64_t address, std::size_t size) {
    return Add(address, std::vector<std::byte>(size));
  }
  void Remove(uint64_t address) { pieces_.erase(address); }

  template <class T>
  void Store(uint64_t address, T value) {
    std::span<std::byte> to = Find(address, sizeof(value));
    if (to.size() == sizeof(value)) std::memcpy(to.data(), &value, sizeof(value));
  }

  // The bytes at an address; empty if they are not all there.
  std::span<std::byte> Find(uint64_t address, std::size_t size) {
    auto piece = pieces_.upper_bound(address);
    if (piece == pieces_.begin()) return {};
    --piece;
    const uint64_t offset = address - piece->first;
    if (offset > piece->second.size() || size > piece->second.size() - offset) return {};
    return std::span(piece->second).subspan(offset, size);
  }

  ReadStatus ReadVectors(std::span<const MemoryRange> ranges) override {
    ++calls;
    if (fail_with != ReadStatus::kOk) return fail_with;
    if (ranges.size() > kMaxRanges) return ReadStatus::kFailed;
    bool any = false;
    for (const MemoryRange& range : ranges) {
      if (before_copy) before_copy(range);
      const std::span<std::byte> from = Find(range.address, range.to.size());
      if (from.size() != range.to.size() || from.empty()) {
        return any ? ReadStatus::kPartial : ReadStatus::kBadAddress;
      }
      std::memcpy(range.to.data(), from.data(), from.size());
      any = true;
    }
    return ReadStatus::kOk;
  }

  std::function<void(const MemoryRange&)> before_copy;
  ReadStatus fail_with = ReadStatus::kOk;
  uint64_t calls = 0;

 private:
  std::map<uint64_t, std::vector<std::byte>> pieces_;
};

}  // namespace spanprof::collect
