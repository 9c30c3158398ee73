#include "format/pprof_value_types.h"

#include <algorithm>

#include "format/pprof_fields.h"

namespace spanprof::format::pprof {
namespace {

using profile::SampleKind;

struct KnownType {
  std::string_view name;
  SampleKind kind;
  bool is_count;
};

constexpr KnownType kKnownTypes[] = {
    {kValueNames[0].count, SampleKind::kCpu, true},
    {kValueNames[0].value, SampleKind::kCpu, false},
    {kValueNames[1].count, SampleKind::kWall, true},
    {kValueNames[1].value, SampleKind::kWall, false},
    {kValueNames[2].count, SampleKind::kAllocation, true},
    {kValueNames[2].value, SampleKind::kAllocation, false},
    {kValueNames[3].count, SampleKind::kLock, true},
    {kValueNames[3].value, SampleKind::kLock, false},
    {"samples", SampleKind::kCpu, true},  // Go and many others
    {"sample", SampleKind::kCpu, true},
    {"cpu-samples", SampleKind::kCpu, true},  // Datadog
    {"cpu-time", SampleKind::kCpu, false},
    {"wall-samples", SampleKind::kWall, true},
    {"wall-time", SampleKind::kWall, false},
    {"alloc-samples", SampleKind::kAllocation, true},
    {"alloc-space", SampleKind::kAllocation, false},
    {"lock-acquire", SampleKind::kLock, true},
    {"lock-acquire-wait", SampleKind::kLock, false},
};

}  // namespace

uint64_t ScaleOf(std::string_view unit) {
  if (unit == "microseconds") return 1'000;
  if (unit == "milliseconds") return 1'000'000;
  if (unit == "seconds") return 1'000'000'000;
  if (unit == "kilobytes") return 1024;
  if (unit == "megabytes") return uint64_t{1} << 20;
  return 1;
}

std::vector<ValueMeaning> MeaningsOf(const std::vector<ValueType>& types) {
  std::vector<ValueMeaning> meanings(types.size());
  bool any_known = false;
  for (size_t i = 0; i < types.size(); ++i) {
    const auto* known =
        std::find_if(std::begin(kKnownTypes), std::end(kKnownTypes),
                     [&](const KnownType& candidate) { return candidate.name == types[i].type; });
    if (known == std::end(kKnownTypes)) continue;
    // "cpu" in a unit of "count" is a count, whatever its name.
    const bool is_count = known->is_count || types[i].unit == "count";
    meanings[i] = {.kind = known->kind, .is_count = is_count, .scale = ScaleOf(types[i].unit)};
    any_known = true;
  }
  if (!any_known && !types.empty()) {
    meanings[0] = {.kind = SampleKind::kCpu,
                   .is_count = types[0].unit == "count",
                   .scale = ScaleOf(types[0].unit)};
  }
  return meanings;
}

}  // namespace spanprof::format::pprof
