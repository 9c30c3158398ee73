#pragma once

// The words by which files and people know the members of the model's enumerations, and the name of
// a frame that has no function.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "profile/profile.h"

namespace spanprof::profile {

std::string_view NameOf(SampleKind kind);    // cpu, wall, allocation, lock
std::string_view UnitOf(SampleKind kind);    // nanoseconds, or bytes
std::string_view NameOf(ThreadState state);  // empty for kUnknown; running, sleeping, ...
// As OpenTelemetry's profile.frame.type has them: native, kernel, jvm, v8js, ruby, rust; marker.
std::string_view NameOf(FrameKind kind);

std::optional<SampleKind> SampleKindOf(std::string_view name);
std::optional<ThreadState> ThreadStateOf(std::string_view name);
std::optional<FrameKind> FrameKindOf(std::string_view name);

// The function's name; else where the code lies, as "libc.so.6+0x1f3a0"; else the address; else
// "[unknown]". Never empty.
std::string FrameName(const Profile& profile, FrameId frame);

// The name of a tag's position: from attribute_names, or "tag_<position>" where that has none.
std::string TagName(const Profile& profile, unsigned position);

std::string SpanIdText(uint64_t id);                   // 16 hex digits
std::string TraceIdText(uint64_t high, uint64_t low);  // 32 hex digits

}  // namespace spanprof::profile
