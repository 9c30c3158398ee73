#pragma once

// The field numbers of pprof's profile.proto, and the names that we give to what it leaves open.

#include <array>
#include <cstdint>
#include <string_view>

#include "profile/profile.h"

namespace spanprof::format::pprof {

struct ProfileField {
  enum : uint32_t {
    kSampleType = 1,
    kSample = 2,
    kMapping = 3,
    kLocation = 4,
    kFunction = 5,
    kStringTable = 6,
    kTimeNanos = 9,
    kDurationNanos = 10,
    kPeriodType = 11,
    kPeriod = 12,
    kComment = 13,
    kDefaultSampleType = 14,
  };
};
struct ValueTypeField {
  enum : uint32_t { kType = 1, kUnit = 2 };
};
struct SampleField {
  enum : uint32_t { kLocationId = 1, kValue = 2, kLabel = 3 };
};
struct LabelField {
  enum : uint32_t { kKey = 1, kStr = 2, kNum = 3, kNumUnit = 4 };
};
// Up to 15 they are ours where profile.proto has none: readers of protobuf skip what they do not
// know, but npm's pprof-format takes a tag for one byte, so there is no number above. In comments,
// by the number of a mapping or location, they would outlive a merge, which counts these anew.
struct MappingField {
  enum : uint32_t {
    kId = 1,
    kMemoryStart = 2,
    kMemoryLimit = 3,
    kFileOffset = 4,
    kFilename = 5,
    kBuildId = 6,
    kHasFunctions = 7,
    kHasFilenames = 8,
    kHasLineNumbers = 9,
    kHasInlineFrames = 10,
    kRealStart = 13,
    kRealEnd = 14,
    kRealFileOffset = 15,
    // The same in files of before; only read.
    kOldRealStart = 100,
    kOldRealEnd = 101,
    kOldRealFileOffset = 102,
  };
};
struct LocationField {
  enum : uint32_t {
    kId = 1,
    kMappingId = 2,
    kAddress = 3,
    kLine = 4,
    kFrameKind = 15,
    kOldFrameKind = 100,  // the same in files of before; only read
  };
};
struct LineField {
  enum : uint32_t { kFunctionId = 1, kLine = 2, kColumn = 3 };
};
struct FunctionField {
  enum : uint32_t { kId = 1, kName = 2, kSystemName = 3, kFilename = 4, kStartLine = 5 };
};

// The two values that a kind of sample has.
struct ValueNames {
  std::string_view count;  // unit: count
  std::string_view value;  // unit: UnitOf(kind)
};
// Go's own names where Go has such a profile.
inline constexpr std::array<ValueNames, profile::kSampleKindCount> kValueNames = {{
    {"cpu_samples", "cpu"},
    {"wall_samples", "wall"},
    {"alloc_objects", "alloc_space"},
    {"contentions", "delay"},
}};

// Labels besides those in format.h.
inline constexpr std::string_view kTimeLabel = "time_unix_nano";  // a number
inline constexpr std::string_view kMinuteLabel =
    "minute_unix_nano";  // a number; the sample is folded
// With LabelScheme::kPyroscope the trace id is two numbers instead of a text.
inline constexpr std::string_view kTraceIdHighLabel = "trace_id_high";
inline constexpr std::string_view kTraceIdLowLabel = "trace_id_low";

inline constexpr std::string_view kDatadogSpanId = "span id";                 // a number
inline constexpr std::string_view kDatadogRootSpanId = "local root span id";  // a number
inline constexpr std::string_view kDatadogEndpoint = "trace endpoint";
inline constexpr std::string_view kDatadogThreadName = "thread name";
inline constexpr std::string_view kDatadogThreadId = "thread id";     // a number
inline constexpr std::string_view kDatadogTime = "end_timestamp_ns";  // a number
inline constexpr std::string_view kPyroscopeSpanName = "span_name";

// Whether a label of this name has a meaning here, so that a tag cannot have it.
bool IsReservedLabel(std::string_view name);

}  // namespace spanprof::format::pprof
