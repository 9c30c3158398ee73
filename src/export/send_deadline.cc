#include "export/send_deadline.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>

#include <sys/eventfd.h>

namespace spanprof::sending {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// How often a thread looks at the deadline once nothing can wake it.
constexpr milliseconds kSlice(100);

std::int64_t ToNanoseconds(SteadyTime at) {
  return std::chrono::duration_cast<nanoseconds>(at.time_since_epoch()).count();
}

}  // namespace

SendDeadline::SendDeadline(SteadyTime at)
    : at_ns_(ToNanoseconds(at)), wake_up_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

SteadyTime SendDeadline::at() const {
  // Relaxed: the number is all there is; the eventfd only makes a waiting thread look again.
  const nanoseconds since_epoch(at_ns_.load(std::memory_order_relaxed));
  return SteadyTime(std::chrono::duration_cast<SteadyTime::duration>(since_epoch));
}

void SendDeadline::BringForward(SteadyTime at) {
  const std::int64_t wanted = ToNanoseconds(at);
  std::int64_t before = at_ns_.load(std::memory_order_relaxed);
  while (wanted < before &&
         !at_ns_.compare_exchange_weak(before, wanted, std::memory_order_relaxed)) {
  }
  if (wake_up_.valid()) (void)eventfd_write(wake_up_.get(), 1);
}

short SendDeadline::Wait(int fd, short events, SteadyTime until) const {
  // An event that was seen is not cleared, as several threads may wait: slices from there on.
  bool can_wake = wake_up_.valid();
  while (true) {
    const nanoseconds left = std::min(until, at()) - steady_clock::now();
    // Rounded up, so as not to spin in the last millisecond.
    auto timeout = std::chrono::ceil<milliseconds>(std::max(left, nanoseconds(0)));
    timeout = std::min(timeout, can_wake ? milliseconds(60'000) : kSlice);
    std::array<pollfd, 2> polled = {pollfd{fd, events, 0},
                                    pollfd{can_wake ? wake_up_.get() : -1, POLLIN, 0}};
    const int ready = poll(polled.data(), polled.size(), static_cast<int>(timeout.count()));
    if (ready < 0 && errno != EINTR) return POLLERR;
    if (ready > 0 && polled[0].revents != 0) return polled[0].revents;
    if (ready > 0 && polled[1].revents != 0) can_wake = false;
    if (left <= nanoseconds(0)) return 0;
  }
}

}  // namespace spanprof::sending
