#include "stress_run.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <time.h>

#include <gtest/gtest.h>

#include <spanprof/context.h>

namespace spanprof::stress {
namespace {

double CaseSeconds() {
  const char* text = getenv("SPANPROF_STRESS_SECONDS");
  const double seconds = text == nullptr ? 0 : strtod(text, nullptr);
  return seconds > 0 ? seconds : 2;
}

}  // namespace

double MonotonicSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void SleepMilliseconds(unsigned milliseconds) {
  timespec left = {milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1'000'000};
  while (nanosleep(&left, &left) != 0) {
  }
}

StressRun::StressRun() : started_(MonotonicSeconds()) {}

double StressRun::seconds() const { return MonotonicSeconds() - started_; }

bool StressRun::Done(bool enough) const {
  static const double duration = CaseSeconds();
  const double elapsed = seconds();
  return elapsed >= duration && (enough || elapsed >= 10 * duration);
}

void StressRun::Report(const char* name, uint64_t value) const {
  const std::string text = std::to_string(value);
  ::testing::Test::RecordProperty(name, text);
  printf("[   stress ] %s: %s\n", name, text.c_str());
}

void StressRun::ReportRate(const char* name, uint64_t count) const {
  Report(name, count);
  const std::string rate = std::string(name) + "_per_second";
  Report(rate.c_str(), static_cast<uint64_t>(static_cast<double>(count) / seconds()));
}

uint64_t CounterNamed(const char* name) {
  for (unsigned i = 0; spanprof_counter_name(i) != nullptr; ++i) {
    if (strcmp(spanprof_counter_name(i), name) == 0) return spanprof_counter_value(i);
  }
  return ~uint64_t{0};
}

}  // namespace spanprof::stress
