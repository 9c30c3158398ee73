#pragma once

// What samples the calling thread, to be switched on and off again and again in one process.

#include <cstdint>
#include <memory>
#include <string>

class Profiler {
 public:
  virtual ~Profiler() = default;
  virtual void SwitchOn() = 0;
  virtual void SwitchOff() = 0;
  // Samples taken while it was on, all in all. 0: it does not say before its end.
  virtual uint64_t samples() const = 0;
};

// "off", "empty" (a timer of the same kind with a handler that does nothing), "spanprof",
// "gperftools" or "perf". Null, and why: it is not to be had here.
std::unique_ptr<Profiler> MakeProfiler(const std::string& name, unsigned hertz, std::string& why);
