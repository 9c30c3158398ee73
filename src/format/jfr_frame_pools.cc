#include "format/jfr_frame_pools.h"

#include <array>
#include <utility>

#include "profile/hashing.h"
#include "profile/names.h"

namespace spanprof::format::jfr {
namespace {

using profile::FrameKind;

// Frame types by the numbers of async-profiler, whose converter knows them by number: 3 to 5 are
// not Java. Number 0 would be "none", so "Interpreted" is not among them.
enum FrameType : uint64_t { kJitCompiled = 1, kInlined, kNative, kCpp, kKernel };
constexpr std::array<std::string_view, 5> kFrameTypes = {"JIT compiled", "Inlined", "Native", "C++",
                                                         "Kernel"};

constexpr std::array kFrameKinds = {FrameKind::kNative,     FrameKind::kKernel, FrameKind::kJava,
                                    FrameKind::kJavaScript, FrameKind::kRuby,   FrameKind::kRust,
                                    FrameKind::kMarker};

FrameType TypeOf(const profile::Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kKernel:
      return kKernel;
    case FrameKind::kNative:
    case FrameKind::kRust:
    case FrameKind::kMarker:
      return kNative;
    case FrameKind::kJava:
    case FrameKind::kJavaScript:
    case FrameKind::kRuby:
      break;
  }
  return frame.inlined ? kInlined : kJitCompiled;
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string Hexadecimal(uint64_t value) {
  std::string text = profile::SpanIdText(value);
  text.erase(0, std::min(text.find_first_not_of('0'), text.size() - 1));
  return "0x" + text;
}

// "java.util.List.add(int)" is the method "add" of the class "java.util.List".
FrameLabel JavaLabel(std::string_view name) {
  const size_t dot = name.substr(0, name.find('(')).rfind('.');
  if (dot == std::string_view::npos) return {.class_name = "", .method_name = std::string(name)};
  return {.class_name = std::string(name.substr(0, dot)),
          .method_name = std::string(name.substr(dot + 1))};
}

}  // namespace

FrameLabel LabelOf(const profile::Profile& profile, profile::FrameId id) {
  const profile::Frame& frame = profile.frames()[id];
  const profile::Function& function = profile.functions()[frame.function];
  const std::string_view name = profile.Text(function.name);
  if (frame.kind == FrameKind::kJava && !name.empty()) return JavaLabel(name);

  FrameLabel label;
  label.class_name = BaseName(profile.Text(profile.mappings()[frame.mapping].path));
  if (frame.kind == FrameKind::kKernel) label.class_name = "[kernel]";
  if (label.class_name.empty()) label.class_name = BaseName(profile.Text(function.file));
  if (label.class_name.empty()) label.class_name = "[" + std::string(NameOf(frame.kind)) + "]";
  if (!name.empty()) {
    label.method_name = name;
  } else {
    label.method_name = frame.address == 0 ? "[unknown]" : Hexadecimal(frame.address);
  }
  return label;
}

size_t FramePools::HashOfFrame::operator()(const profile::Frame& frame) const {
  return profile::HashValues(frame.kind, frame.inlined, frame.mapping, frame.address,
                             frame.function, frame.column);
}

FramePools::FramePools(const profile::Profile& profile)
    : profile_(profile),
      method_of_frame_(profile.frames().size(), 0),
      function_keys_(profile.functions().size(), 0),
      mapping_keys_(profile.mappings().size(), 0) {
  for (const std::string_view type : kFrameTypes) {
    frame_types_.Begin();
    frame_types_.entries.Utf8(type);
  }
  for (const FrameKind kind : kFrameKinds) {
    frame_kinds_.Begin();
    frame_kinds_.entries.Utf8(NameOf(kind));
  }
}

uint64_t FramePools::Symbol(profile::StringId text) {
  return text == profile::kNone ? 0 : symbols_.Add(profile_.Text(text));
}

uint64_t FramePools::Class(const std::string& name) {
  const auto [found, added] = class_keys_.try_emplace(name, classes_.count + 1);
  if (!added) return found->second;
  const uint64_t symbol = symbols_.Add(name);
  classes_.Begin();
  classes_.entries.Varint(0);  // class loader
  classes_.entries.Varint(symbol);
  classes_.entries.Varint(0);  // package
  classes_.entries.Varint(0);  // modifiers
  return found->second;
}

uint64_t FramePools::Function(profile::FunctionId id) {
  if (id == profile::kNone || function_keys_[id] != 0) return function_keys_[id];
  const profile::Function& function = profile_.functions()[id];
  function_keys_[id] = functions_.Begin();
  functions_.entries.Varint(Symbol(function.name));
  functions_.entries.Varint(Symbol(function.system_name));
  functions_.entries.Varint(Symbol(function.file));
  functions_.entries.Varint(function.start_line);
  return function_keys_[id];
}

uint64_t FramePools::Mapping(profile::MappingId id) {
  if (id == profile::kNone || mapping_keys_[id] != 0) return mapping_keys_[id];
  const profile::Mapping& mapping = profile_.mappings()[id];
  mapping_keys_[id] = mappings_.Begin();
  mappings_.entries.Varint(mapping.start);
  mappings_.entries.Varint(mapping.end);
  mappings_.entries.Varint(mapping.file_offset);
  mappings_.entries.Varint(Symbol(mapping.path));
  mappings_.entries.Varint(Symbol(mapping.build_id));
  return mapping_keys_[id];
}

uint64_t FramePools::Method(profile::FrameId id) {
  if (method_of_frame_[id] != 0) return method_of_frame_[id];
  profile::Frame frame = profile_.frames()[id];
  frame.line = 0;
  const auto [found, added] = method_keys_.try_emplace(frame, methods_.count + 1);
  method_of_frame_[id] = found->second;
  if (!added) return found->second;

  const FrameLabel label = LabelOf(profile_, id);
  const uint64_t class_key = Class(label.class_name);
  methods_.Begin();
  methods_.entries.Varint(class_key);
  methods_.entries.Varint(symbols_.Add(label.method_name));
  methods_.entries.Varint(symbols_.Add("()V"));  // the JDK's tools take it apart
  methods_.entries.Varint(0);                    // modifiers
  methods_.entries.Byte(0);                      // hidden

  frames_.Begin();
  frames_.entries.Varint(static_cast<uint64_t>(frame.kind) + 1);
  frames_.entries.Byte(frame.inlined ? 1 : 0);
  frames_.entries.Varint(Mapping(frame.mapping));
  frames_.entries.Varint(frame.address);
  frames_.entries.Varint(Function(frame.function));
  frames_.entries.Varint(frame.column);
  return found->second;
}

void FramePools::AddStackTrace(profile::StackId stack) {
  const std::vector<profile::FrameId> frames = profile_.FramesOf(stack);
  stack_traces_.Begin();
  stack_traces_.entries.Byte(0);  // truncated
  stack_traces_.entries.Varint(frames.size());
  for (const profile::FrameId id : frames) {
    const profile::Frame& frame = profile_.frames()[id];
    stack_traces_.entries.Varint(Method(id));
    stack_traces_.entries.Varint(frame.line);
    stack_traces_.entries.Varint(0);  // bytecode index
    stack_traces_.entries.Varint(TypeOf(frame));
  }
}

}  // namespace spanprof::format::jfr
