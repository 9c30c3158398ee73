// What a sample costs: sampler_benchmark PROFILER HERTZ DEPTH WINDOWS
//
// The same work runs in windows with the profiler off and on by turns, and the CPU time of both is
// compared: the thread's own clock has everything that its signal handlers take. Writes one JSON
// object: a line for bench/sampler/run to gather.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "profilers.h"
#include "workload.h"

namespace {

constexpr uint64_t kWindowNs = 200'000'000;

// So much work that a window takes about its time.
uint64_t CalibrateRounds(unsigned depth) {
  uint64_t rounds = 1'000'000;
  uint64_t best = RunWorkload(depth, rounds);
  for (int i = 0; i < 5; ++i) best = std::min(best, RunWorkload(depth, rounds));
  return std::max<uint64_t>(1, rounds * kWindowNs / std::max<uint64_t>(best, 1));
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr,
            "usage: sampler_benchmark off|empty|spanprof|gperftools|perf HERTZ DEPTH WINDOWS\n");
    return 2;
  }
  const std::string name = argv[1];
  const auto hertz = static_cast<unsigned>(atoi(argv[2]));
  const auto depth = static_cast<unsigned>(atoi(argv[3]));
  const int windows = atoi(argv[4]);
  std::string why;
  const std::unique_ptr<Profiler> profiler = MakeProfiler(name, hertz, why);
  if (profiler == nullptr) {
    printf("{\"profiler\":\"%s\",\"hertz\":%u,\"depth\":%u,\"skipped\":\"%s\"}\n", name.c_str(),
           hertz, depth, why.c_str());
    return 0;
  }
  const uint64_t rounds = CalibrateRounds(depth);
  std::vector<double> off_ns, on_ns, added_ns, samples;
  for (int i = 0; i < windows; ++i) {
    const auto off = static_cast<double>(RunWorkload(depth, rounds));
    const uint64_t before = profiler->samples();
    profiler->SwitchOn();
    const auto on = static_cast<double>(RunWorkload(depth, rounds));
    profiler->SwitchOff();
    const auto off_again = static_cast<double>(RunWorkload(depth, rounds));
    off_ns.push_back((off + off_again) / 2);
    on_ns.push_back(on);
    added_ns.push_back(on - (off + off_again) / 2);
    samples.push_back(static_cast<double>(profiler->samples() - before));
  }
  printf(
      "{\"profiler\":\"%s\",\"hertz\":%u,\"depth\":%u,\"windows\":%d,\"off_ns\":%.0f,\"on_ns\":%."
      "0f,"
      "\"added_ns\":%.0f,\"samples_a_window\":%.1f}\n",
      name.c_str(), hertz, depth, windows, Median(off_ns), Median(on_ns), Median(added_ns),
      Median(samples));
  return 0;
}
