#pragma once

// How much slower to sample so that the profiler keeps within its share of the CPU. Asked about
// once a second with what everything has come to since the start.
//
//   CpuBudget budget(2);  // percent
//   const unsigned slowdown = budget.Update(elapsed, process_cpu, handlers_cpu, threads_cpu);
//
// The share is of the CPU time that the process used or of the time that passed, whichever is more:
// what is 2 % of a processor is not much for a program that only waits. For one thread.

#include <cstdint>

namespace spanprof::sampling {

class CpuBudget {
 public:
  static constexpr unsigned kMaxSlowdown = 64;

  // 0: no limit.
  explicit CpuBudget(unsigned max_percent = 0) : max_percent_(max_percent) {}

  [[nodiscard]] bool has_limit() const { return max_percent_ != 0; }
  // 1 or a greater power of two: how many times longer intervals are than was asked for.
  [[nodiscard]] unsigned slowdown() const { return slowdown_; }

  // Nanoseconds since the start: that passed, that the process used, that handlers took on the
  // program's threads, and that the profiler's own threads used. Returns the new slowdown.
  unsigned Update(uint64_t elapsed_ns, uint64_t process_cpu_ns, uint64_t handlers_ns,
                  uint64_t own_threads_ns);

 private:
  // What was added since the last time; nothing if it went back, as when a thread has ended.
  static uint64_t TakeNew(uint64_t now, uint64_t& before);

  unsigned max_percent_;
  unsigned slowdown_ = 1;
  uint64_t elapsed_ns_ = 0;
  uint64_t process_cpu_ns_ = 0;
  uint64_t handlers_ns_ = 0;
  uint64_t own_threads_ns_ = 0;
  uint64_t last_own_threads_ns_ = 0;  // used in the period before
};

}  // namespace spanprof::sampling
