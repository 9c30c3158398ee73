#pragma once

// How long a stress test runs, and how it reports what it saw.
//
//   StressRun run;
//   while (!run.Done(accepted >= kEnoughReads)) { ... }
//   run.ReportRate("accepted", accepted);
//
// SPANPROF_STRESS_SECONDS is the duration of a case, 2 by default. A case that has not seen enough
// by then goes on up to ten times as long. Rates are reported, never asserted.

#include <cstdint>

namespace spanprof::stress {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

inline constexpr bool kSanitized = kThreadSanitizer || kAddressSanitizer;

// What makes a case meaningful.
inline constexpr uint64_t kEnoughReads = 1000;
inline constexpr uint64_t kEnoughSignals = 100;

class StressRun {
 public:
  StressRun();

  // Whether to stop: the time is over and enough was seen, or ten times the time is over.
  bool Done(bool enough) const;
  double seconds() const;  // since the construction

  // Prints a line and adds it to the test's XML.
  void Report(const char* name, uint64_t value) const;
  void ReportRate(const char* name, uint64_t count) const;

 private:
  double started_;
};

double MonotonicSeconds();
void SleepMilliseconds(unsigned milliseconds);

// The value of one of the library's counters; ~0 when there is none of that name.
uint64_t CounterNamed(const char* name);

}  // namespace spanprof::stress
