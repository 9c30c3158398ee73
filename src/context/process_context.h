#pragma once

// Publishes the process context (OTEP 4719): resource attributes, and the names of the attributes
// that thread records carry. One a process. Not signal-safe, but for RepublishInForkedChild, which
// does not allocate.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/options.h"
#include <spanprof/internal/records.hpp>

namespace spanprof::context {

// How readers find a thread's record: by the variable otel_thread_ctx_v1, unless a runtime has a
// way of its own, which may need numbers.
struct ThreadSchema {
  std::string version = internal::kSchemaVersion;
  std::vector<std::pair<std::string, int64_t>> numbers;
};

// The protobuf message that readers decode. `attribute_names` are the tags' names by position.
std::string EncodeProcessContext(const std::vector<ResourceAttribute>& resource,
                                 const std::vector<std::string>& attribute_names,
                                 const ThreadSchema& schema = {});

class ProcessContextPublisher {
 public:
  // Publishes the payload, or replaces the one that is published. False: there is no memory, or no
  // way to give it a name that readers look for.
  bool Publish(std::string payload);
  void Withdraw();
  // A forked child has no such mapping any more: make one, with the same payload.
  void RepublishInForkedChild();

 private:
  bool MapHeader();
  void WriteHeader();

  internal::ProcessContextHeader* header_ = nullptr;
  // The present one and the one before it, whose reader may just be copying it. Never destroyed:
  // the process may be exiting while other threads still run.
  std::string* current_ = nullptr;
  std::string* previous_ = nullptr;
  uint64_t last_stamp_ = 0;
};

}  // namespace spanprof::context
