#pragma once

// Several recordings as one: their targets are numbered anew, so that a process which is in two of
// them, since one harvester went on where another was, is one target.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "coroutine/recording.h"

namespace spanprof::coroutine {

class RecordingSet {
 public:
  // Files in the order of their beginnings. Fails if one of them is no recording.
  [[nodiscard]] static Result<RecordingSet> Open(const std::vector<std::string>& paths);

  // Reads all of them, one after the other. May be called again.
  [[nodiscard]] Result<void> Read(RecordingVisitor& visitor) const;

  // Whether each has its end and no block of it was skipped.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  // Process, its start, and which of its areas it is: a process usually has one.
  using Identity = std::tuple<uint32_t, uint64_t, uint32_t>;
  struct File {
    std::string path;
    uint64_t begin = 0;                    // its first clock
    std::map<uint32_t, uint32_t> numbers;  // by the target's number in the file
  };

  std::vector<File> files_;
  bool complete_ = true;
};

}  // namespace spanprof::coroutine
