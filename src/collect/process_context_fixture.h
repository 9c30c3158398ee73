#pragma once

// A process context in fake memory, for tests.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "collect/fake_memory.h"
#include <spanprof/internal/records.hpp>

namespace spanprof::collect {

inline constexpr uint64_t kFakeContextAddress = 0x600000000000;
inline constexpr uint64_t kFakePayloadAddress = 0x610000000000;
inline constexpr char kFakeContextMapsLine[] =
    "600000000000-600000001000 rw-p 00000000 00:01 11 /memfd:OTEL_CTX (deleted)\n";

inline std::string EncodeFakeContext(
    const std::vector<std::pair<std::string, std::string>>& resource,
    const std::vector<std::string>& keys) {
  using protozero::pbf_writer;
  std::string payload;
  std::string attributes;
  for (const auto& [key, text] : resource) {
    std::string value;
    pbf_writer(value).add_string(1, text);
    std::string pair;
    pbf_writer(pair).add_string(1, key);
    pbf_writer(pair).add_message(2, value);
    pbf_writer(attributes).add_message(1, pair);
  }
  pbf_writer(payload).add_message(1, attributes);
  std::string list;
  for (const std::string& key : keys) {
    std::string value;
    pbf_writer(value).add_string(1, key);
    pbf_writer(list).add_message(1, value);
  }
  std::string value;
  pbf_writer(value).add_message(5, list);
  std::string pair;
  pbf_writer(pair).add_string(1, internal::kKeyMapKey);
  pbf_writer(pair).add_message(2, value);
  pbf_writer(payload).add_message(2, pair);
  return payload;
}

class FakeProcessContext {
 public:
  explicit FakeProcessContext(FakeMemory& memory) : memory_(memory) {
    const auto header = memory_.AddZeros(kFakeContextAddress, 4096);
    std::memcpy(header.data(), internal::kProcessContextSignature, 8);
    memory_.Store(kFakeContextAddress + 8, internal::kProcessContextVersion);
  }

  void Publish(const std::string& payload, uint64_t stamp, uint64_t at = kFakePayloadAddress) {
    std::vector<std::byte> bytes(payload.size());
    if (!payload.empty()) std::memcpy(bytes.data(), payload.data(), payload.size());
    memory_.Add(at, std::move(bytes));
    memory_.Store(kFakeContextAddress + 12, static_cast<uint32_t>(payload.size()));
    memory_.Store(kFakeContextAddress + 24, at);
    SetStamp(stamp);
  }
  void SetStamp(uint64_t stamp) { memory_.Store(kFakeContextAddress + 16, stamp); }

 private:
  FakeMemory& memory_;
};

}  // namespace spanprof::collect
