#include "profile/names.h"

#include <array>
#include <charconv>

namespace spanprof::profile {
namespace {

constexpr std::array<std::string_view, kSampleKindCount> kKindNames = {"cpu", "wall", "allocation",
                                                                       "lock"};
constexpr std::array<std::string_view, 5> kStateNames = {"", "running", "sleeping", "waiting",
                                                         "blocked"};
constexpr std::array<std::string_view, 7> kFrameKindNames = {"native", "kernel", "jvm",   "v8js",
                                                             "ruby",   "rust",   "marker"};

template <class Enum, size_t kSize>
std::string_view NameIn(const std::array<std::string_view, kSize>& names, Enum value) {
  const auto index = static_cast<size_t>(value);
  return index < kSize ? names[index] : std::string_view("invalid");
}

template <class Enum, size_t kSize>
std::optional<Enum> ValueIn(const std::array<std::string_view, kSize>& names,
                            std::string_view name) {
  for (size_t i = 0; i < kSize; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

std::string HexText(uint64_t value) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value, 16).ptr;
  return std::string(digits, end);
}

}  // namespace

std::string_view NameOf(SampleKind kind) { return NameIn(kKindNames, kind); }
std::string_view UnitOf(SampleKind kind) {
  return kind == SampleKind::kAllocation ? "bytes" : "nanoseconds";
}
std::string_view NameOf(ThreadState state) { return NameIn(kStateNames, state); }
std::string_view NameOf(FrameKind kind) { return NameIn(kFrameKindNames, kind); }

std::optional<SampleKind> SampleKindOf(std::string_view name) {
  return ValueIn<SampleKind>(kKindNames, name);
}
std::optional<ThreadState> ThreadStateOf(std::string_view name) {
  return ValueIn<ThreadState>(kStateNames, name);
}
std::optional<FrameKind> FrameKindOf(std::string_view name) {
  return ValueIn<FrameKind>(kFrameKindNames, name);
}

std::string FrameName(const Profile& profile, FrameId frame_id) {
  const Frame& frame = profile.frames()[frame_id < profile.frames().size() ? frame_id : kNone];
  const Function& function = profile.functions()[frame.function];
  if (function.name != kNone) return std::string(profile.Text(function.name));
  if (function.system_name != kNone) return std::string(profile.Text(function.system_name));
  std::string_view path = profile.Text(profile.mappings()[frame.mapping].path);
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  if (!path.empty()) return std::string(path) + "+0x" + HexText(frame.address);
  if (frame.address != 0) return "0x" + HexText(frame.address);
  return "[unknown]";
}

std::string TagName(const Profile& profile, unsigned position) {
  if (position < profile.attribute_names.size() && !profile.attribute_names[position].empty()) {
    return profile.attribute_names[position];
  }
  return "tag_" + std::to_string(position);
}

std::string SpanIdText(uint64_t id) {
  std::string digits = HexText(id);
  return std::string(16 - digits.size(), '0') + digits;
}

std::string TraceIdText(uint64_t high, uint64_t low) { return SpanIdText(high) + SpanIdText(low); }

}  // namespace spanprof::profile
