#pragma once

// The field numbers of OTLP profiles, v1development of proto 1.11 (PyPI: opentelemetry-proto 1.45),
// and the names of attributes.

#include <cstdint>
#include <string_view>

namespace spanprof::format::otlp {

struct RequestField {
  enum : uint32_t { kResourceProfiles = 1, kDictionary = 2 };
};
struct ResourceProfilesField {
  enum : uint32_t { kResource = 1, kScopeProfiles = 2 };
};
struct ResourceField {
  enum : uint32_t { kAttributes = 1 };
};
struct ScopeProfilesField {
  enum : uint32_t { kScope = 1, kProfiles = 2 };
};
struct ScopeField {
  enum : uint32_t { kName = 1, kVersion = 2 };
};
struct KeyValueField {
  enum : uint32_t { kKey = 1, kValue = 2, kKeyStrindex = 3 };
};
struct AnyValueField {
  enum : uint32_t {
    kString = 1,
    kBool = 2,
    kInt = 3,
    kDouble = 4,
    kArray = 5,
    kKvlist = 6,
    kBytes = 7,
    kStringStrindex = 8,
  };
};
struct ProfileField {
  enum : uint32_t {
    kSampleType = 1,
    kSamples = 2,
    kTimeUnixNano = 3,  // fixed64
    kDurationNano = 4,
    kPeriodType = 5,
    kPeriod = 6,
    kProfileId = 7,
    kAttributeIndices = 11,
  };
};
struct ValueTypeField {
  enum : uint32_t { kTypeStrindex = 1, kUnitStrindex = 2 };
};
struct SampleField {
  enum : uint32_t {
    kStackIndex = 1,
    kAttributeIndices = 2,
    kLinkIndex = 3,
    kValues = 4,
    kTimestampsUnixNano = 5,  // fixed64
  };
};
struct DictionaryField {
  enum : uint32_t {
    kMappingTable = 1,
    kLocationTable = 2,
    kFunctionTable = 3,
    kLinkTable = 4,
    kStringTable = 5,
    kAttributeTable = 6,
    kStackTable = 7,
  };
};
struct MappingField {
  enum : uint32_t {
    kMemoryStart = 1,
    kMemoryLimit = 2,
    kFileOffset = 3,
    kFilenameStrindex = 4,
    kAttributeIndices = 5,
  };
};
struct LocationField {
  enum : uint32_t { kMappingIndex = 1, kAddress = 2, kLines = 3, kAttributeIndices = 4 };
};
struct LineField {
  enum : uint32_t { kFunctionIndex = 1, kLine = 2, kColumn = 3 };
};
struct FunctionField {
  enum : uint32_t {
    kNameStrindex = 1,
    kSystemNameStrindex = 2,
    kFilenameStrindex = 3,
    kStartLine = 4,
  };
};
struct LinkField {
  enum : uint32_t { kTraceId = 1, kSpanId = 2 };
};
struct StackField {
  enum : uint32_t { kLocationIndices = 1 };
};
struct KeyValueAndUnitField {
  enum : uint32_t { kKeyStrindex = 1, kValue = 2, kUnitStrindex = 3 };
};

// Attributes. Where OpenTelemetry has a name, it is that; those of the context are in format.h.
inline constexpr std::string_view kThreadNameAttribute = "thread.name";
inline constexpr std::string_view kThreadIdAttribute = "thread.id";  // an int
inline constexpr std::string_view kFrameTypeAttribute = "profile.frame.type";
inline constexpr std::string_view kBuildIdAttribute = "process.executable.build_id.gnu";
// Of a sample: how many it stands for, if not one; and that its time is only the minute's start.
inline constexpr std::string_view kSampleCount = "spanprof.count";    // an int
inline constexpr std::string_view kSampleFolded = "spanprof.folded";  // a bool
// Of a profile. The counters and the tags' names are with the first one only.
inline constexpr std::string_view kRequestedPeriod = "spanprof.period.requested";  // an int
inline constexpr std::string_view kCounterPrefix = "spanprof.counter.";            // an int
inline constexpr std::string_view kTagNamePrefix = "spanprof.attribute.";  // and the position

// Whether an attribute of this name has a meaning here, so that a tag cannot have it.
bool IsReservedAttribute(std::string_view name);

}  // namespace spanprof::format::otlp
