#pragma once

// Which endpoint the spans under a local root belong to. A tracer often knows it only when the
// request ends, so samples carry the root and the endpoint is looked up when a profile is written.
// Bounded: a new root takes the place of an old one that hashes alike, and that is counted.

#include <atomic>
#include <cstdint>

namespace spanprof::context {

class EndpointTable {
 public:
  static constexpr uint32_t kSets = 8192;
  static constexpr uint32_t kWays = 4;

  bool Create();
  // `endpoint` is a tag dictionary id. Not signal-safe; never waits for another thread.
  void Set(uint64_t root_span_id, uint32_t endpoint);
  // 0: not known (any more).
  uint32_t Find(uint64_t root_span_id) const;

 private:
  struct Entry {
    std::atomic<uint64_t> root_span_id;
    std::atomic<uint32_t> endpoint;
    std::atomic<uint32_t> age;
  };
  Entry* SetOf(uint64_t root_span_id) const;

  std::atomic<Entry*> entries_{nullptr};
  std::atomic<uint32_t> clock_{0};
};

}  // namespace spanprof::context
