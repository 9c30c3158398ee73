// What an event costs the thread that it happens on.

#include <cstdlib>
#include <unistd.h>

#include "bench/coroutine/measured_jobs.h"
#include <spanprof/internal/coroutine_clock.hpp>

namespace spanprof::bench {
namespace {

namespace wire = internal::coroutine;

constexpr uint64_t kResumes = 400'000;

template <class Function>
double PerCall(uint64_t calls, const Function& function) {
  const double begin = NanosecondsOf(CLOCK_THREAD_CPUTIME_ID);
  for (uint64_t i = 0; i < calls; ++i) function();
  return (NanosecondsOf(CLOCK_THREAD_CPUTIME_ID) - begin) / static_cast<double>(calls);
}

template <class Mixin>
double ResumeCost(uint32_t count, const bool& own_rings) {
  const auto jobs = MakeJobs<Mixin>(count);
  for (const auto& job : jobs) job.Resume();
  uint64_t next = 0;
  double total = 0;
  constexpr int kBatches = 8;
  for (int batch = 0; batch < kBatches; ++batch) {
    // Room for a batch, as a harvester would make it.
    if (own_rings && wire::thread_ring.control != nullptr) {
      wire::thread_ring.control->tail.store(wire::thread_ring.head);
    }
    total += PerCall(kResumes / kBatches, [&] {
      jobs[next].Resume();
      if (++next == jobs.size()) next = 0;
    });
  }
  return total / kBatches;
}

bool own_rings_on = false;

}  // namespace

double BareResume(uint32_t jobs) { return ResumeCost<NoProbe>(jobs, false); }

double ProbedResume(uint32_t jobs) { return ResumeCost<traced_promise>(jobs, own_rings_on); }

double CycleCounterAlone() {
  return PerCall(kResumes, [] {
    const uint64_t now = wire::CycleCounter();
    asm volatile("" : : "r"(now));
  });
}

double ClockAlone() {
  return PerCall(kResumes, [] {
    const uint64_t now = wire::MonotonicNanoseconds();
    asm volatile("" : : "r"(now));
  });
}

void TraceToOwnRings(bool on) {
  wire::GlobalHeader& header = *wire::process.header.load();
  if (on) {
    header.mode.fetch_or(wire::kModeRings);
  } else {
    header.mode.fetch_and(~wire::kModeRings);
  }
  own_rings_on = on;
}

}  // namespace spanprof::bench
