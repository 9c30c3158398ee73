#include "sampling/cpu_budget.h"

#include <algorithm>
#include <utility>

namespace spanprof::sampling {

uint64_t CpuBudget::TakeNew(uint64_t now, uint64_t& before) {
  const uint64_t last = std::exchange(before, now);
  return now > last ? now - last : 0;
}

unsigned CpuBudget::Update(uint64_t elapsed_ns, uint64_t process_cpu_ns, uint64_t handlers_ns,
                           uint64_t own_threads_ns) {
  const uint64_t passed = TakeNew(elapsed_ns, elapsed_ns_);
  const uint64_t used = TakeNew(process_cpu_ns, process_cpu_ns_);
  const uint64_t handlers = TakeNew(handlers_ns, handlers_ns_);
  const uint64_t threads = TakeNew(own_threads_ns, own_threads_ns_);
  // What is done once, reading symbols say, is not what it costs to go on.
  const uint64_t steady = std::min(threads, std::exchange(last_own_threads_ns_, threads));
  if (max_percent_ == 0) return slowdown_;
  const uint64_t allowed = std::max(passed, used) * max_percent_ / 100;
  if (allowed == 0) return slowdown_;
  const uint64_t cost = handlers + steady;
  uint64_t cost_when_slower = cost;
  while (cost_when_slower > allowed && slowdown_ < kMaxSlowdown) {
    slowdown_ *= 2;
    cost_when_slower /= 2;
  }
  // Twice as many samples have to fit with room, or it would go up and down.
  if (slowdown_ > 1 && cost * 2 < allowed - allowed / 8) slowdown_ /= 2;
  return slowdown_;
}

}  // namespace spanprof::sampling
