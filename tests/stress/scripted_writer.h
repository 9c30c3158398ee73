#pragma once

// A thread's part in a stress test: goes through the script of self_checking_context.h with every
// call of the C and C++ interfaces, and says at each moment how far it is.

#include <atomic>
#include <cstdint>

#include "self_checking_context.h"

namespace spanprof::stress {

// Where a writer is; may lie in memory shared with another process.
struct Progress {
  std::atomic<int> tid{0};
  std::atomic<uint32_t> key{0};
  // The step that was begun last, and the one that was finished last.
  std::atomic<uint64_t> started{kCycle - 1};
  std::atomic<uint64_t> completed{kCycle - 1};
  std::atomic<bool> gone{false};  // joined: nobody may see its context any more
};

class ScriptedWriter {
 public:
  // `progress` outlives the writer. Takes the calling thread's tid.
  ScriptedWriter(Progress& progress, uint32_t key);

  // Sixteen steps. `extra_stack` bytes more of stack are in use during them.
  void RunCycle(unsigned extra_stack = 0);
  // Cycles until `stop`, from stack depths that change.
  void RunUntil(const std::atomic<bool>& stop);

  Progress& progress() { return progress_; }
  uint32_t key() const { return key_; }
  uint64_t steps() const { return next_ - kCycle; }
  // What `out` of swap was and should not have been.
  uint64_t wrong_swaps() const { return wrong_swaps_; }

 private:
  template <class Operation>
  void Step(Operation operation);
  void Cycle();
  void ScopesOfCycle(uint64_t base);

  Progress& progress_;
  const uint32_t key_;
  uint64_t next_ = kCycle;
  uint64_t wrong_swaps_ = 0;
};

// "ctxstorage=...,attributes=a0;...;a9,log=none" with all tags, and the tag texts interned.
// `more` is appended as it is, e.g. ",ctxslots=3". Returns what spanprof_init returned.
int InitForStress(const char* storage, const char* more = "");

int CurrentTid();

}  // namespace spanprof::stress
