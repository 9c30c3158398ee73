#pragma once

// For tests: samples the calling thread by a timer's signal while a block runs, and keeps what the
// walker found.
//
//   NativeSelfSampler sampler(walker);
//   sampler.Run(1000, [] { work a little; });
//   EXPECT_GE(sampler.CompletePercent(), 99);

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sampling/stack_walker.h"

namespace spanprof::sampling {

enum class StackBounds { kKnown, kUnknown };

struct KeptStack {
  unsigned depth = 0;
  bool complete = false;
  WalkFailure failure = WalkFailure::kNone;
  uint64_t note = 0;  // NativeSelfSampler::note at the sample
  std::vector<uint64_t> pcs;
};

class NativeSelfSampler {
 public:
  static constexpr unsigned kMaxDepth = 1024;
  static constexpr unsigned kKeptDepth = 64;  // frames kept of each sample: the innermost
  static constexpr unsigned kMaxSamples = 20000;

  explicit NativeSelfSampler(const StackWalker& walker, StackBounds bounds = StackBounds::kKnown);
  ~NativeSelfSampler();
  NativeSelfSampler(const NativeSelfSampler&) = delete;
  NativeSelfSampler& operator=(const NativeSelfSampler&) = delete;

  // Calls `work` again and again, sampling this thread every `interval`, until there are `wanted`
  // samples: how many come in a given time depends on what else the machine does. Gives up after a
  // minute.
  void Run(unsigned wanted, const std::function<void()>& work,
           std::chrono::microseconds interval = std::chrono::microseconds(150));

  // Calls `work` once with a sample before each of its instructions. False where the machine
  // cannot: only x86-64 lets a program step itself.
  [[nodiscard]] bool RunByInstruction(const std::function<void()>& work);

  [[nodiscard]] unsigned samples() const;
  [[nodiscard]] unsigned complete() const;
  [[nodiscard]] double CompletePercent() const;
  [[nodiscard]] std::vector<KeptStack> Stacks() const;
  // How many walks failed for each reason, and where; for a failed test's message.
  [[nodiscard]] std::string Describe() const;

  // What the sampled code wants to be remembered with a sample.
  static volatile uint64_t note;

 private:
  // Tells the handler of `signal`, and installs it.
  void Prepare(int signal, struct sigaction& previous) const;

  StackBounds bounds_;
};

// "libc.so.6+0x1234 (qsort_r)" or so; for a failed test's message.
std::string DescribePc(uint64_t pc);

// The bounds of the calling thread's stack.
std::array<uint64_t, 2> OwnStackBounds();

}  // namespace spanprof::sampling
