// What tracing coroutines costs, beside its floor, in one run and interleaved: medians of rounds
// with the least and the most.
//
//   coroutine_benchmark [SECONDS]   how long the paced stream runs (default 60)

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

using Rows = std::map<std::string, std::vector<double>>;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string Named(const char* what, uint32_t count) { return what + (" " + std::to_string(count)); }

void MeasureRound(Rows& rows) {
  rows["rdtsc"].push_back(CycleCounterAlone());
  rows["clock_gettime"].push_back(ClockAlone());
  for (const uint32_t count : kCounts) {
    const double bare = BareResume(count);
    rows[Named("bare", count)].push_back(bare);
    rows[Named("off", count)].push_back(ProbedResume(count));
    TraceToOwnRings(true);
    rows[Named("ring", count)].push_back((ProbedResume(count) - bare) / 2);
    TraceToOwnRings(false);
    rows[Named("harvested", count)].push_back((HarvestedEventCost(count) - bare) / 2);
    rows[Named("foreign", count)].push_back((ForeignEventCost(count) - bare) / 2);
  }
}

void PrintRow(const std::string& title, const std::vector<double>& values, double rdtsc) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double median = Median(values);
  std::printf("| %s | %.2f | %.2f to %.2f | %.2f |\n", title.c_str(), median, *least, *most,
              median / rdtsc);
}

void PrintCosts(Rows& rows) {
  const double rdtsc = Median(rows["rdtsc"]);
  std::printf("| nanoseconds of CPU time | median | spread | times rdtsc |\n|---|---|---|---|\n");
  PrintRow("rdtsc", rows["rdtsc"], rdtsc);
  PrintRow("clock_gettime", rows["clock_gettime"], rdtsc);
  for (const uint32_t count : kCounts) {
    const std::string of =
        ", " + std::to_string(count) + (count == 1 ? " coroutine" : " coroutines");
    PrintRow("bare resume + suspend" + of, rows[Named("bare", count)], rdtsc);
    PrintRow("the same with the probe, off" + of, rows[Named("off", count)], rdtsc);
    PrintRow("an event to the ring" + of, rows[Named("ring", count)], rdtsc);
    PrintRow("an event while harvested" + of, rows[Named("harvested", count)], rdtsc);
    PrintRow("an event to a station slot, for a foreign harvester" + of,
             rows[Named("foreign", count)], rdtsc);
  }
}

void PrintStream(const char* what, uint32_t count, const HarvestFigures& figures) {
  std::printf("| %s, %u | %.1f M | %.4f | %.2f |\n", what, count, figures.events_per_second / 1e6,
              figures.lost_percent, figures.bytes_per_event);
}

}  // namespace

int main(int argc, char** argv) {
  const double paced_seconds = argc > 1 ? std::atof(argv[1]) : 60;
  {
    const auto first = MakeJobs<spanprof::traced_promise>(1);  // makes the shared memory
  }
  Rows rows;
  for (int round = 0; round < kRounds; ++round) MeasureRound(rows);
  PrintCosts(rows);

  std::printf(
      "\n| end to end, coroutines | events/s | lost %% | bytes/event |\n|---|---|---|---|\n");
  for (const uint32_t count : kCounts) PrintStream("full speed", count, HarvestAtRate(3, 0, count));
  const std::string paced = "paced for " + std::to_string(static_cast<int>(paced_seconds)) + " s";
  PrintStream(paced.c_str(), 1, HarvestAtRate(paced_seconds, 20e6, 1));

  std::printf("\n| from the event to the file | median us | 99 %% us |\n|---|---|---|\n");
  const Latencies awake = EventToFile(2'000, 500);
  std::printf("| while the harvester is awake | %.0f | %.0f |\n", awake.median,
              awake.percentile_99);
  const Latencies asleep = EventToFile(60'000, 50);
  std::printf("| when it has to be woken | %.0f | %.0f |\n", asleep.median, asleep.percentile_99);
  const WakeFigures idle = IdleAndWake(100'000);
  std::printf(
      "\nan event that wakes the harvester costs its thread %.1f us; the harvester, idle with "
      "100,000 stations, takes %.3f %% of a core\n",
      idle.waker_microseconds, idle.idle_percent);
  return 0;
}
