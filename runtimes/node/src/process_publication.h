#pragma once

// What readers outside learn of the process as a whole (OTEP 4719): by which schema its threads
// publish contexts, how V8's objects are laid out, and what the attributes are called. Any thread.

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/result.h"
#include "context/process_context.h"

namespace spanprof::node {

class ProcessPublication {
 public:
  static ProcessPublication& Instance();

  // From the first call on there is something to be read. `record_offset` is where an object of
  // ours has its record's address. EEXIST: another library publishes for this process. ENOTSUP:
  // memory cannot be given the name that readers look for.
  Result<void> Begin(int64_t record_offset);
  void SetResource(std::vector<ResourceAttribute> resource);
  // A tag has a new name.
  void NamesChanged();

 private:
  bool Publish();

  std::mutex mutex_;
  bool begun_ = false;
  int64_t record_offset_ = 0;
  std::vector<ResourceAttribute> resource_;
  context::ProcessContextPublisher publisher_;
};

}  // namespace spanprof::node
