#pragma once

// The same coroutine twice, without and with the probe.

#include <coroutine>
#include <cstdint>
#include <ctime>
#include <utility>
#include <vector>

#include <spanprof/coroutine.hpp>

namespace spanprof::bench {

struct NoProbe {};

template <class Mixin>
class LoopingJob {
 public:
  struct promise_type : Mixin {
    LoopingJob get_return_object() {
      return LoopingJob(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  LoopingJob(LoopingJob&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~LoopingJob() {
    if (handle_) handle_.destroy();
  }
  void Resume() const { handle_.resume(); }

 private:
  explicit LoopingJob(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

template <class Mixin>
LoopingJob<Mixin> Loop() {
  for (;;) co_await std::suspend_always{};
}

template <class Mixin>
std::vector<LoopingJob<Mixin>> MakeJobs(uint32_t count) {
  std::vector<LoopingJob<Mixin>> jobs;
  for (uint32_t i = 0; i < count; ++i) jobs.push_back(Loop<Mixin>());
  return jobs;
}

inline double NanosecondsOf(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Prints nothing; each function is one row of the table, in nanoseconds of CPU time.
double BareResume(uint32_t jobs);
double CycleCounterAlone();
double ClockAlone();
double ProbedResume(uint32_t jobs);  // with whatever mode is set in this process
// Makes the probe of this process write to rings, which this process empties itself, for nothing.
void TraceToOwnRings(bool on);

struct HarvestFigures {
  double events_per_second = 0;
  double lost_percent = 0;
  double bytes_per_event = 0;
};
// Another process emits for this long, at this rate (0: as fast as it can); we harvest to a file.
HarvestFigures HarvestAtRate(double seconds, double events_per_second, uint32_t jobs);
// Nanoseconds of CPU that an event costs its target while it is harvested.
double HarvestedEventCost(uint32_t jobs);
// The same for a harvester that is not ours: events in station slots. Nobody reads them.
double ForeignEventCost(uint32_t jobs);

struct WakeFigures {
  double waker_microseconds = 0;  // what an event costs that has to wake the harvester
  double idle_percent = 0;        // of a core, with this many stations and nothing to do
};
WakeFigures IdleAndWake(uint32_t stations);

// From an event to its bytes in the file, in microseconds: a harvester in a process of its own, as
// the command is one, and so long between two events.
struct Latencies {
  double median = 0;
  double percentile_99 = 0;
};
Latencies EventToFile(uint32_t pause_microseconds, int events);

}  // namespace spanprof::bench
