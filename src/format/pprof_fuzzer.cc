// Fuzzes the pprof reader: whatever the bytes are, it answers, keeps to its memory, and what it has
// read can be written and read again.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "format/format.h"
#include "profile/profile_query.h"

namespace {

// Unlike assert(), stands in every kind of build.
void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(spanprof::format::FormatOfBytes(bytes));
  const spanprof::format::ReadLimits limits{.max_memory = 1 << 20, .max_uncompressed = 1 << 20};
  const auto profile = spanprof::format::ReadPprof(bytes, limits);
  if (!profile) {
    Require(profile.error().code != 0 && !profile.error().message.empty());
    return 0;
  }
  Require(profile->memory_used() <= limits.max_memory);
  const auto written = spanprof::format::WritePprof(*profile, {});
  Require(written.has_value());
  Require(spanprof::format::ReadPprof(*written, {}).has_value());
  static_cast<void>(spanprof::profile::GroupSamples(*profile, spanprof::profile::GroupBy::kFunction,
                                                    spanprof::profile::SampleKind::kCpu));
  return 0;
}
