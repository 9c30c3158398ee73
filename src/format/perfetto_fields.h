#pragma once

// The field numbers of Perfetto's trace format that we write (protos/perfetto/trace/trace.proto).

#include <cstdint>

namespace spanprof::format::perfetto {

struct TraceField {
  enum : uint32_t { kPacket = 1 };
};
struct PacketField {
  enum : uint32_t {
    kClockSnapshot = 6,
    kTimestamp = 8,
    kSequenceId = 10,
    kTrackEvent = 11,
    kInternedData = 12,
    kSequenceFlags = 13,
    kDefaults = 59,
    kTrackDescriptor = 60,
    kPerfSample = 66,
    kFirstPacketOnSequence = 87,
  };
};
struct ClockSnapshotField {
  enum : uint32_t { kClocks = 1, kPrimaryClock = 2 };
};
struct ClockField {
  enum : uint32_t { kId = 1, kTimestamp = 2 };
};
struct TrackField {
  enum : uint32_t { kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParentUuid = 5 };
};
struct ProcessField {
  enum : uint32_t { kPid = 1, kName = 6, kLabels = 8 };
};
struct ThreadField {
  enum : uint32_t { kPid = 1, kTid = 2, kName = 5 };
};
struct EventField {
  enum : uint32_t {
    kCategoryIids = 3,
    kAnnotations = 4,
    kType = 9,
    kNameIid = 10,
    kTrackUuid = 11,
    kFlowIds = 47  // fixed64
  };
};
struct AnnotationField {
  enum : uint32_t { kNameIid = 1, kString = 6 };
};
struct InternedField {
  enum : uint32_t {
    kCategories = 1,
    kEventNames = 2,
    kAnnotationNames = 3,
    kFunctionNames = 5,
    kFrames = 6,
    kCallstacks = 7,
    kBuildIds = 16,
    kMappingPaths = 17,
    kSourcePaths = 18,
    kMappings = 19,
  };
};
// Also those of EventName, EventCategory and DebugAnnotationName.
struct InternedStringField {
  enum : uint32_t { kIid = 1, kText = 2 };
};
struct FrameField {
  enum : uint32_t {
    kIid = 1,
    kFunctionName = 2,
    kMapping = 3,
    kRelativePc = 4,
    kSourcePath = 5,
    kLine = 6
  };
};
struct CallstackField {
  enum : uint32_t { kIid = 1, kFrames = 2 };
};
struct MappingField {
  enum : uint32_t { kIid = 1, kBuildId = 2, kStart = 4, kEnd = 5, kPaths = 7, kExactOffset = 8 };
};
struct PerfSampleField {
  enum : uint32_t {
    kCpu = 1,
    kPid = 2,
    kTid = 3,
    kCallstack = 4,
    kCpuMode = 5,
    kTimebaseCount = 6
  };
};
struct DefaultsField {
  enum : uint32_t { kPerfSample = 12 };
};
struct PerfDefaultsField {
  enum : uint32_t { kTimebase = 1 };
};
struct TimebaseField {
  enum : uint32_t { kPeriod = 1, kCounter = 4, kName = 10 };
};

inline constexpr uint32_t kStateCleared = 1;  // SEQ_INCREMENTAL_STATE_CLEARED
inline constexpr uint32_t kNeedsState = 2;    // SEQ_NEEDS_INCREMENTAL_STATE
inline constexpr uint32_t kClockRealtime = 1;
inline constexpr uint32_t kClockMonotonic = 3;
inline constexpr uint32_t kClockBoottime = 6;  // what timestamps are in
inline constexpr int32_t kSliceBegin = 1;
inline constexpr int32_t kSliceEnd = 2;
inline constexpr int32_t kInstant = 3;
inline constexpr int32_t kModeKernel = 1;
inline constexpr int32_t kModeUser = 2;
inline constexpr int32_t kSoftwareCpuClock = 1;  // PerfEvents.SW_CPU_CLOCK

}  // namespace spanprof::format::perfetto
