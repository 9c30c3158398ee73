#include "format/jfr_stack_reader.h"

#include <algorithm>
#include <utility>

#include "format/jfr_schema.h"
#include "profile/names.h"

namespace spanprof::format::jfr {
namespace {

using profile::FrameKind;
using Use = ConstantMemo::Use;

constexpr size_t kMaxEnumName = 64;
constexpr size_t kMaxClassName = 4096;  // a prefix of all its methods' names

}  // namespace

StackReader::StackReader(const ChunkContents& contents, ConstantMemo& memo,
                         profile::Profile& profile)
    : contents_(contents), memo_(memo), profile_(profile) {
  our_frames_ = contents.metadata().FindName(kFrameName);
  const std::optional<uint32_t> frame_types = contents.metadata().FindName("jdk.types.FrameType");
  if (!frame_types || our_frames_) return;
  for (uint64_t key = 0; key < 8; ++key) {
    const std::optional<size_t> position = contents.pools().Find(*frame_types, key);
    if (position && contents.TextOfConstant(*position, kMaxEnumName) == "Kernel") {
      has_kernel_frames_ = true;
    }
  }
}

profile::StringId StackReader::Text(const FieldValue& value) {
  const std::optional<size_t> constant = contents_.TextConstant(value);
  if (!constant) return profile_.Intern(contents_.Text(value));
  if (const std::optional<uint32_t> known = memo_.Find(Use::kText, *constant)) return *known;
  return memo_.Store(Use::kText, *constant, profile_.Intern(contents_.TextOfConstant(*constant)));
}

profile::StackId StackReader::Stack(const FieldValue& value) {
  const std::optional<size_t> position = contents_.FindConstant(value);
  if (!position) return profile::kNone;
  if (const std::optional<uint32_t> known = memo_.Find(Use::kStack, *position)) return *known;
  return memo_.Store(Use::kStack, *position, ReadStack(*position));
}

profile::StackId StackReader::ReadStack(size_t position) {
  Record trace;
  if (!contents_.ReadConstant(position, trace)) return profile::kNone;
  const FieldValue* frames = trace.Find("frames");
  if (frames == nullptr || !frames->field->array || frames->field->pooled) return profile::kNone;
  const Type& frame_type = contents_.metadata().types()[frames->field->type];
  if (frame_type.storage != Storage::kStruct || frame_type.empty) return profile::kNone;

  std::vector<profile::FrameId> frames_found;  // innermost first
  Input input(contents_.bytes(), frames->offset, frames->end);
  const uint64_t count = input.Varint();
  Record frame;
  for (uint64_t i = 0; i < count; ++i) {
    if (!contents_.Read(frames->field->type, input, frames->end, frame)) break;
    frames_found.push_back(ReadFrame(frame));
  }
  if (trace.Number("truncated", 0) != 0) {
    const profile::FunctionId note =
        profile_.AddFunction({.name = profile_.Intern("[stack truncated]")});
    frames_found.push_back(profile_.AddFrame({.kind = FrameKind::kMarker, .function = note}));
  }
  std::reverse(frames_found.begin(), frames_found.end());
  return profile_.AddStack(frames_found);
}

profile::FrameId StackReader::ReadFrame(const Record& record) {
  const FieldValue* method_field = record.Find("method");
  if (method_field == nullptr) return profile::kNone;
  const std::optional<size_t> position = contents_.FindConstant(*method_field);
  if (!position) return profile::kNone;
  const Method& method = MethodOf(*position);
  profile::Frame frame = method.frame;
  frame.line = static_cast<uint32_t>(record.Number("lineNumber", 0));
  if (!method.is_ours) {
    ReadFrameType(record, frame);
    const bool is_java = frame.kind == FrameKind::kJava;
    frame.function = profile_.AddFunction({.name = is_java ? method.qualified_name : method.name});
    // The JDK has -1 where there is no line.
    if (static_cast<int32_t>(frame.line) < 0) frame.line = 0;
  }
  return profile_.AddFrame(frame);
}

void StackReader::ReadFrameType(const Record& record, profile::Frame& frame) {
  constexpr uint32_t kInlinedBit = 0x100;
  frame.kind = FrameKind::kJava;
  const FieldValue* type = record.Find("type");
  const std::optional<size_t> position =
      type == nullptr ? std::nullopt : contents_.FindConstant(*type);
  if (!position) return;
  std::optional<uint32_t> number = memo_.Find(Use::kFrameType, *position);
  if (!number) {
    const std::string name = contents_.TextOfConstant(*position, kMaxEnumName);
    FrameKind kind = FrameKind::kJava;
    if (name == "Kernel") kind = FrameKind::kKernel;
    if (name == "C++" || (name == "Native" && has_kernel_frames_)) kind = FrameKind::kNative;
    number = memo_.Store(Use::kFrameType, *position,
                         static_cast<uint32_t>(kind) | (name == "Inlined" ? kInlinedBit : 0));
  }
  frame.kind = static_cast<FrameKind>(*number & 0xff);
  frame.inlined = (*number & kInlinedBit) != 0;
}

const StackReader::Method& StackReader::MethodOf(size_t position) {
  if (const std::optional<uint32_t> known = memo_.Find(Use::kMethod, position))
    return methods_[*known];
  methods_.push_back(ReadMethod(position));
  return methods_[memo_.Store(Use::kMethod, position, static_cast<uint32_t>(methods_.size() - 1))];
}

StackReader::Method StackReader::ReadMethod(size_t position) {
  Method method;
  if (ReadOurFrame(contents_.pools()[position].key, method.frame)) {
    method.is_ours = true;
    return method;
  }
  Record record;
  if (!contents_.ReadConstant(position, record)) return method;
  if (const FieldValue* name = record.Find("name")) method.name = Text(*name);
  method.qualified_name = method.name;
  const FieldValue* type = record.Find("type");
  const std::optional<size_t> class_constant =
      type == nullptr ? std::nullopt : contents_.FindConstant(*type);
  Record class_record;
  if (!class_constant || !contents_.ReadConstant(*class_constant, class_record)) return method;
  const FieldValue* class_name = class_record.Find("name");
  if (class_name == nullptr) return method;
  std::string qualified(profile_.Text(Text(*class_name)));
  if (qualified.empty() || qualified.size() > kMaxClassName) return method;
  std::replace(qualified.begin(), qualified.end(), '/', '.');
  qualified += '.';
  qualified += profile_.Text(method.name);
  method.qualified_name = profile_.Intern(qualified);
  return method;
}

bool StackReader::ReadOurFrame(uint64_t method_key, profile::Frame& frame) {
  if (!our_frames_) return false;
  const std::optional<size_t> position = contents_.pools().Find(*our_frames_, method_key);
  Record record;
  if (!position || !contents_.ReadConstant(*position, record)) return false;
  if (const FieldValue* kind = record.Find("kind")) {
    frame.kind =
        profile::FrameKindOf(contents_.Text(*kind, kMaxEnumName)).value_or(FrameKind::kNative);
  }
  frame.inlined = record.Number("inlined", 0) != 0;
  frame.address = record.Number("address", 0);
  frame.column = static_cast<uint32_t>(record.Number("column", 0));
  if (const FieldValue* mapping = record.Find("mapping")) frame.mapping = Mapping(*mapping);
  if (const FieldValue* function = record.Find("function")) frame.function = Function(*function);
  return true;
}

profile::FunctionId StackReader::Function(const FieldValue& value) {
  const std::optional<size_t> position = contents_.FindConstant(value);
  if (!position) return profile::kNone;
  if (const std::optional<uint32_t> known = memo_.Find(Use::kFunction, *position)) return *known;
  Record record;
  if (!contents_.ReadConstant(*position, record)) return profile::kNone;
  profile::Function function;
  if (const FieldValue* name = record.Find("name")) function.name = Text(*name);
  if (const FieldValue* name = record.Find("systemName")) function.system_name = Text(*name);
  if (const FieldValue* file = record.Find("file")) function.file = Text(*file);
  function.start_line = static_cast<uint32_t>(record.Number("startLine", 0));
  return memo_.Store(Use::kFunction, *position, profile_.AddFunction(function));
}

profile::MappingId StackReader::Mapping(const FieldValue& value) {
  const std::optional<size_t> position = contents_.FindConstant(value);
  if (!position) return profile::kNone;
  if (const std::optional<uint32_t> known = memo_.Find(Use::kMapping, *position)) return *known;
  Record record;
  if (!contents_.ReadConstant(*position, record)) return profile::kNone;
  profile::Mapping mapping{.start = record.Number("start", 0),
                           .end = record.Number("end", 0),
                           .file_offset = record.Number("fileOffset", 0)};
  if (const FieldValue* path = record.Find("path")) mapping.path = Text(*path);
  if (const FieldValue* build_id = record.Find("buildId")) mapping.build_id = Text(*build_id);
  return memo_.Store(Use::kMapping, *position, profile_.AddMapping(mapping));
}

}  // namespace spanprof::format::jfr
