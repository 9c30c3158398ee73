#pragma once

// When to look at a thread whose samples come from a timer of its CPU clock while it runs, and how
// much time off the CPU its next sample stands for. For the sampler's thread.
//
//   looks.Begin(now, cpu);
//   if (looks.IsDue(tick)) {
//     looks.Account(now, cpu);
//     if (looks.WholeTicksOff(interval) != 0) ...  // sample it where it waits, and TakeOff
//     looks.Schedule(tick, sleeps);
//   }
//
// What a thread runs is its timer's to sample, whenever that begins. So a thread that has slept for
// long is looked at less often: after an eighth of that time, and at most kMaxTicks. So is one that
// has not, and the more it runs: by then it has waited for about a tick.

#include <cstdint>

namespace spanprof::sampling {

class WallLooks {
 public:
  static constexpr uint64_t kMaxTicks = 10;

  void Begin(uint64_t now_ns, uint64_t cpu_ns) {
    looked_ns_ = now_ns;
    cpu_ns_ = cpu_ns;
  }

  [[nodiscard]] bool IsDue(uint64_t tick) const { return tick >= next_tick_; }
  [[nodiscard]] uint64_t next_tick() const { return next_tick_; }

  // The thread's clock at this moment.
  void Account(uint64_t now_ns, uint64_t cpu_ns);

  // Time off the CPU that no sample stands for yet.
  [[nodiscard]] uint64_t WholeTicksOff(uint64_t interval_ns) const {
    return off_cpu_ns_ / interval_ns;
  }
  void TakeOff(uint64_t nanoseconds) { off_cpu_ns_ -= nanoseconds; }

  // `sleeps`: it has slept since it was sampled there.
  void Schedule(uint64_t tick, bool sleeps);

 private:
  uint64_t looked_ns_ = 0;
  uint64_t cpu_ns_ = 0;
  uint64_t off_cpu_ns_ = 0;
  uint64_t passed_ns_ = 0;  // between the last two looks, and of that off the CPU
  uint64_t off_then_ns_ = 0;
  uint64_t since_tick_ = 0;  // when it fell asleep, or was seen not to sleep any more
  uint64_t next_tick_ = 0;
  bool sleeps_ = false;
};

}  // namespace spanprof::sampling
