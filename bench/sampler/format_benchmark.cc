// What a profile costs to keep: format_benchmark PROFILE
//
// Writes the profile in each format, several times, and prints bytes a sample and the CPU time of a
// file, as JSON lines.

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "format/format.h"

namespace {

double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Row {
  const char* name;
  spanprof::OutputFormat format;
  spanprof::format::WriteOptions options;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: format_benchmark PROFILE\n");
    return 2;
  }
  std::ifstream input(argv[1], std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(input)), {});
  const auto format = spanprof::format::FormatOfBytes(bytes);
  if (!format) {
    fprintf(stderr, "%s: %s\n", argv[1], format.error().message.c_str());
    return 1;
  }
  const auto profile = spanprof::format::ReadProfile(bytes, *format, {});
  if (!profile) {
    fprintf(stderr, "%s: %s\n", argv[1], profile.error().message.c_str());
    return 1;
  }
  using spanprof::OutputFormat;
  using spanprof::format::SampleTimes;
  spanprof::format::WriteOptions exact, minute, flat;
  exact.sample_times = SampleTimes::kExact;
  minute.sample_times = SampleTimes::kMinute;
  flat.jfr_context = spanprof::JfrContext::kFlat;
  const std::vector<Row> rows = {
      {"pprof", OutputFormat::kPprof, exact},
      {"pprof, times to the minute", OutputFormat::kPprof, minute},
      {"OTLP", OutputFormat::kOtlp, {}},
      {"JFR", OutputFormat::kJfr, {}},
      {"JFR, flat", OutputFormat::kJfr, flat},
      {"folded", OutputFormat::kFolded, {}},
      {"HTML", OutputFormat::kHtml, {}},
      {"Firefox", OutputFormat::kFirefox, {}},
      {"Perfetto", OutputFormat::kPerfetto, {}},
  };
  for (const Row& row : rows) {
    std::vector<double> seconds;
    size_t size = 0;
    for (int i = 0; i < 7; ++i) {
      const double before = CpuSeconds();
      const auto written = spanprof::format::WriteProfile(*profile, row.format, row.options);
      if (!written) return 1;
      seconds.push_back(CpuSeconds() - before);
      size = written->size();
    }
    std::sort(seconds.begin(), seconds.end());
    printf("{\"format\":\"%s\",\"samples\":%zu,\"bytes\":%zu,\"seconds\":%.6f}\n", row.name,
           profile->samples().size(), size, seconds[seconds.size() / 2]);
  }
  return 0;
}
