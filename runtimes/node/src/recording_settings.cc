#include "recording_settings.h"

#include <cerrno>
#include <chrono>
#include <string>

namespace spanprof::node {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kDefaultInterval = std::chrono::milliseconds(10);
constexpr nanoseconds kShortestInterval = std::chrono::microseconds(50);

}  // namespace

Result<RecordingSettings> SettingsOf(const Options& options) {
  if (options.command != Command::kNone && options.command != Command::kStart) {
    return Fail(EINVAL, "the options of a start begin with another command",
                "leave the command out, or say start");
  }
  if (options.lock) {
    return Fail(ENOTSUP, "lock= is not for Node.js: V8 has no such events", "leave it out");
  }
  if (options.cpu && options.wall && *options.cpu != *options.wall) {
    return Fail(EINVAL, "cpu= and wall= are two different intervals, and V8 samples at one",
                "give both the same");
  }
  const nanoseconds interval =
      options.wall ? *options.wall : options.cpu.value_or(kDefaultInterval);
  if (interval < kShortestInterval) {
    return Fail(EINVAL,
                "the interval of " + std::to_string(interval.count()) + " ns is too short for V8",
                "give 50us or more");
  }
  RecordingSettings settings;
  settings.interval_ns = interval.count();
  settings.wall = options.wall.has_value();
  settings.cpu = options.cpu.has_value() || (!options.wall && !options.allocation);
  settings.allocation_bytes = options.allocation.value_or(0);
  settings.max_memory = options.max_memory.value_or(kDefaultMaxMemory);
  settings.running = true;
  return settings;
}

}  // namespace spanprof::node
