#include "sampling/wall_looks.h"

#include <algorithm>

namespace spanprof::sampling {

void WallLooks::Account(uint64_t now_ns, uint64_t cpu_ns) {
  passed_ns_ = now_ns > looked_ns_ ? now_ns - looked_ns_ : 0;
  const uint64_t ran = cpu_ns > cpu_ns_ ? cpu_ns - cpu_ns_ : 0;
  looked_ns_ = now_ns;
  cpu_ns_ = cpu_ns;
  off_then_ns_ = passed_ns_ - std::min(passed_ns_, ran);
  off_cpu_ns_ += off_then_ns_;
}

void WallLooks::Schedule(uint64_t tick, bool sleeps) {
  const bool is_first = next_tick_ == 0;
  if (is_first || sleeps != sleeps_) {
    sleeps_ = sleeps;
    since_tick_ = tick;
  }
  uint64_t pause = (tick - since_tick_) / 8;
  if (!sleeps && off_then_ns_ != 0) pause = std::min(pause, passed_ns_ / off_then_ns_);
  pause = std::clamp<uint64_t>(pause, 1, kMaxTicks);
  next_tick_ = tick + pause;
  // All that are looked at so seldom at the same ticks.
  if (pause == kMaxTicks) next_tick_ -= next_tick_ % kMaxTicks;
}

}  // namespace spanprof::sampling
