#pragma once

// What the two walkers found on the same stacks, and whether it can be true. For the test agent.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <jvmti.h>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>

#include "sampling/stack_walker.h"

namespace spanprof::jvm {

struct WalkerTestStack {
  static constexpr unsigned kMaxDepth = 512;
  sampling::WalkedStack result;
  uint64_t nanoseconds;
  uint64_t words[kMaxDepth];
};

struct WalkerTestSample {
  static constexpr unsigned kStackWords = 40;
  std::atomic<bool> finished;
  uint64_t pc;
  uint64_t frame_pointer;  // from the stack pointer
  uint64_t stack[kStackWords];
  WalkerTestStack hotspot;
  WalkerTestStack asgct;
};

class WalkerTestReport {
 public:
  static constexpr uint64_t kMaxSamples = 24576;

  WalkerTestReport();

  // SIGNAL-SAFE. Null: there is no more room.
  WalkerTestSample* Begin() {
    const uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
    return index < kMaxSamples ? &samples_[index] : nullptr;
  }
  void Finish(WalkerTestSample& sample) { sample.finished.store(true, std::memory_order_release); }

  // A jmethodID that the JVM has given out: no other may be in a stack. Any thread.
  void NoteMethod(jmethodID method) {
    const std::lock_guard lock(mutex_);
    methods_.insert(reinterpret_cast<uint64_t>(method));
  }

  // Code of the VM that is no method's, for messages.
  void NoteStub(const char* name, uint64_t begin, uint64_t size) {
    const std::lock_guard lock(mutex_);
    stubs_[begin] = {name, size};
  }

  // A thread that could not be sampled.
  void NoteNoClock() { no_clock_.fetch_add(1); }

  void NoteFrozenProblem(const std::string& text) { frozen_problem_ = text; }

  // Writes lines "name value". Names of methods are asked for here, so the JVM has to be alive.
  void Write(jvmtiEnv* jvmti, FILE* file);

 private:
  [[nodiscard]] std::string StubAt(uint64_t pc) const;
  void PrintStart(FILE* file, const WalkerTestSample& sample) const;

  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> no_clock_{0};
  std::string frozen_problem_;
  std::mutex mutex_;
  std::unordered_set<uint64_t> methods_;
  std::map<uint64_t, std::pair<std::string, uint64_t>> stubs_;  // name and size by address
  WalkerTestSample* samples_ = nullptr;  // mapped, and touched only as far as it is used
};

}  // namespace spanprof::jvm
