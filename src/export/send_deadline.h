#pragma once

// The moment at which sending has to end. Another thread may bring it forward, and whoever waits
// under it then wakes up: so the end of the program does not wait for a server.
//
// Any thread may call these; none is for a signal handler.

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/unique_fd.h"

namespace spanprof::sending {

using SteadyTime = std::chrono::steady_clock::time_point;

class SendDeadline {
 public:
  explicit SendDeadline(SteadyTime at);

  [[nodiscard]] SteadyTime at() const;
  [[nodiscard]] bool IsOver() const { return std::chrono::steady_clock::now() >= at(); }

  // Never puts it back.
  void BringForward(SteadyTime at);

  // What poll() finds ready on `fd` by `until` or the deadline, 0 if nothing: EINTR, and a deadline
  // that is brought forward meanwhile, are taken into account. `fd` may be -1, to sleep.
  [[nodiscard]] short Wait(int fd, short events, SteadyTime until) const;

 private:
  std::atomic<std::int64_t> at_ns_;
  UniqueFd wake_up_;  // an eventfd, readable from the first BringForward() on
};

}  // namespace spanprof::sending
