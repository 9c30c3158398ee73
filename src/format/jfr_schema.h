#pragma once

// The types that our chunks have: those of the JDK, exactly as its tools know them, and ours.
//
// async-profiler's converter reads threads, methods, frames and stack traces by position, not by
// the metadata, so none of these has a field more than the JDK's. What the model knows of a frame
// beyond that is in a pool of its own, spanprof.Frame, under the key of the frame's method. A
// sample event has our fields behind the standard ones.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "format/jfr_metadata.h"
#include "profile/profile.h"

namespace spanprof::format::jfr {

// The numbers of events are below 128 and so take one byte, and the same in every chunk.
enum EventId : uint64_t {
  kExecutionSampleId = 2,
  kWallSampleId,
  kAllocationSampleId,
  kLockId,
  kCounterId,
  kPeriodId,
  kEndpointId,
  kResourceId,
  kPartId,
};

inline constexpr std::string_view kExecutionSampleName = "jdk.ExecutionSample";
inline constexpr std::string_view kWallSampleName = "spanprof.WallSample";
inline constexpr std::string_view kAllocationSampleName = "jdk.ObjectAllocationSample";
inline constexpr std::string_view kLockName = "jdk.JavaMonitorEnter";
inline constexpr std::string_view kCounterName = "spanprof.Counter";
inline constexpr std::string_view kPeriodName = "spanprof.Period";
inline constexpr std::string_view kEndpointName = "spanprof.Endpoint";
inline constexpr std::string_view kResourceName = "spanprof.Resource";
inline constexpr std::string_view kPartName = "spanprof.Part";
inline constexpr std::string_view kContextName = "spanprof.Context";
inline constexpr std::string_view kValueName = "spanprof.Value";
inline constexpr std::string_view kFrameName = "spanprof.Frame";
inline constexpr std::string_view kFunctionName = "spanprof.Function";
inline constexpr std::string_view kMappingName = "spanprof.Mapping";

// The last of the fields that every context has; those behind it are the attributes, the name of
// each being its field's label.
inline constexpr std::string_view kEndpointField = "endpoint";

// The types that have constant pools.
enum class Pool : uint8_t {
  kString,
  kSymbol,
  kClass,
  kThread,
  kThreadState,
  kFrameType,
  kMethod,
  kStackTrace,
  kContext,
  kValue,
  kFrameKind,
  kFunction,
  kMapping,
  kFrame,
};
inline constexpr size_t kPoolCount = 14;

// The first key of the pool of values, which is the second of our fields of a sample.
inline constexpr uint64_t kFirstValueKey = 16;
static_assert(kPartId < kFirstValueKey);

// The same in every chunk, since Mission Control takes an event whose fields have other numbers for
// another event. Large, so that other writers' numbers are not among them; some readers keep 31
// bits.
constexpr uint64_t IdOf(Pool pool) { return 0x5350'0000 + static_cast<uint64_t>(pool); }

struct Schema {
  std::vector<Type> types;
  std::deque<std::string> names;  // of attributes; views of them are in `types`
};

// The number of attributes that contexts of the profile have.
unsigned AttributeCount(const profile::Profile& profile);

Schema MakeSchema(const profile::Profile& profile, JfrContext context);

}  // namespace spanprof::format::jfr
