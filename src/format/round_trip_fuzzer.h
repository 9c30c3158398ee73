#pragma once

// What the fuzzers of the readers pprof, OTLP and folded ask of each: whatever the bytes are, it
// answers, keeps to its memory, and what it has read can be written and read again.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "format/format.h"
#include "profile/profile_query.h"

namespace spanprof::format {

// Unlike assert(), stands in every kind of build.
inline void Require(bool condition) {
  if (!condition) std::abort();
}

template <typename Read, typename Write>
void ReadWriteAndReadAgain(const uint8_t* data, size_t size, const Read& read, const Write& write) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(FormatOfBytes(bytes));
  const ReadLimits limits{.max_memory = 1 << 20, .max_uncompressed = 1 << 20};
  const auto profile = read(bytes, limits);
  if (!profile) {
    Require(profile.error().code != 0 && !profile.error().message.empty());
    return;
  }
  Require(profile->memory_used() <= limits.max_memory);
  const auto written = write(*profile, WriteOptions{});
  Require(written.has_value());
  // A folded file of no samples has no bytes, by which no reader would know it.
  Require(written->empty() || read(*written, ReadLimits{}).has_value());
  static_cast<void>(
      profile::GroupSamples(*profile, profile::GroupBy::kFunction, profile::SampleKind::kCpu));
}

}  // namespace spanprof::format
