// What tracing coroutines costs, beside its floor, in one run and interleaved: medians of rounds.
//
//   coroutine_benchmark [SECONDS]   how long the paced stream runs (default 5)

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/coroutine/measured_jobs.h"

namespace {

using namespace spanprof::bench;  // NOLINT(google-build-using-namespace): a program of one file

constexpr int kRounds = 9;
constexpr uint32_t kCounts[] = {1, 100, 10'000};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const double paced_seconds = argc > 1 ? std::atof(argv[1]) : 5;
  {
    const auto first = MakeJobs<spanprof::traced_promise>(1);  // makes the shared memory
  }
  std::map<std::string, std::vector<double>> rows;
  for (int round = 0; round < kRounds; ++round) {
    rows["rdtsc"].push_back(CycleCounterAlone());
    rows["clock_gettime"].push_back(ClockAlone());
    for (const uint32_t count : kCounts) {
      const std::string suffix = " " + std::to_string(count);
      const double bare = BareResume(count);
      rows["bare" + suffix].push_back(bare);
      rows["off" + suffix].push_back(ProbedResume(count));
      TraceToOwnRings(true);
      rows["ring" + suffix].push_back((ProbedResume(count) - bare) / 2);
      TraceToOwnRings(false);
      rows["harvested" + suffix].push_back((HarvestedEventCost(count) - bare) / 2);
    }
  }
  std::printf("| what | ns |\n|---|---|\n");
  std::printf("| rdtsc | %.2f |\n", Median(rows["rdtsc"]));
  std::printf("| clock_gettime | %.2f |\n", Median(rows["clock_gettime"]));
  for (const uint32_t count : kCounts) {
    const std::string suffix = " " + std::to_string(count);
    std::printf("| bare resume + suspend, %u coroutines | %.2f |\n", count,
                Median(rows["bare" + suffix]));
    std::printf("| the same with the probe, off | %.2f |\n", Median(rows["off" + suffix]));
    std::printf("| an event to the ring | %.2f |\n", Median(rows["ring" + suffix]));
    std::printf("| an event while harvested | %.2f |\n", Median(rows["harvested" + suffix]));
  }
  std::printf("\n| end to end | events/s | lost %% | bytes/event |\n|---|---|---|---|\n");
  for (const uint32_t count : kCounts) {
    const HarvestFigures full = HarvestAtRate(2, 0, count);
    std::printf("| full speed, %u coroutines | %.1f M | %.2f | %.2f |\n", count,
                full.events_per_second / 1e6, full.lost_percent, full.bytes_per_event);
  }
  const HarvestFigures paced = HarvestAtRate(paced_seconds, 20e6, 1);
  std::printf("| paced 20 M/s for %.0f s, 1 coroutine | %.1f M | %.4f | %.2f |\n", paced_seconds,
              paced.events_per_second / 1e6, paced.lost_percent, paced.bytes_per_event);
  const WakeFigures idle = IdleAndWake(100'000);
  std::printf(
      "\nan event that wakes the harvester: %.1f us; harvester idle with 100,000 stations: "
      "%.3f %% of a core\n",
      idle.waker_microseconds, idle.idle_percent);
  return 0;
}
