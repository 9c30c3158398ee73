#include "format/perfetto_callstacks.h"

#include <algorithm>

#include "format/format_text.h"
#include "format/perfetto_fields.h"
#include "profile/names.h"

namespace spanprof::format {
namespace {

using namespace perfetto;  // NOLINT(google-build-using-namespace): the field numbers

// A frame without a mapping would be refused. These stand for them, one for each FrameKind.
constexpr size_t kMadeUpMappings = 8;

std::string BytesOfHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    const auto byte = ParseHex(hex.substr(i, 2));
    if (!byte) return {};
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

}  // namespace

PerfettoCallstacks::PerfettoCallstacks(const profile::Profile& profile, size_t max_frames)
    : profile_(profile),
      frames_left_(max_frames),
      has_stack_(profile.stacks().size()),
      has_frame_(profile.frames().size()),
      has_mapping_(profile.mappings().size() + kMadeUpMappings) {}

uint64_t PerfettoCallstacks::Text(uint32_t field, std::string_view text,
                                  protozero::pbf_writer& out) {
  auto& numbers = texts_[field];
  const auto [entry, is_new] = numbers.emplace(text, numbers.size() + 1);
  if (is_new) {
    protozero::pbf_writer string(out, field);
    string.add_uint64(InternedStringField::kIid, entry->second);
    string.add_bytes(InternedStringField::kText, entry->first);
  }
  return entry->second;
}

uint64_t PerfettoCallstacks::MappingOf(const profile::Frame& frame, protozero::pbf_writer& out) {
  const bool is_known = frame.mapping != profile::kNone;
  const uint64_t iid =
      is_known ? frame.mapping + kMadeUpMappings : static_cast<uint64_t>(frame.kind) + 1;
  if (has_mapping_[iid - 1]) return iid;
  has_mapping_[iid - 1] = true;
  const profile::Mapping& mapping = profile_.mappings()[frame.mapping];
  std::string path =
      is_known ? ToUtf8(profile_.Text(mapping.path)) : "[" + std::string(NameOf(frame.kind)) + "]";
  // Readers put a slash in front of each part.
  if (path.starts_with('/')) path.erase(0, 1);
  const uint64_t path_iid = Text(InternedField::kMappingPaths, path, out);
  const uint64_t build_id_iid =
      Text(InternedField::kBuildIds, BytesOfHex(profile_.Text(mapping.build_id)), out);
  protozero::pbf_writer message(out, InternedField::kMappings);
  message.add_uint64(MappingField::kIid, iid);
  message.add_uint64(MappingField::kBuildId, build_id_iid);
  message.add_uint64(MappingField::kStart, mapping.start);
  message.add_uint64(MappingField::kEnd, mapping.end);
  message.add_uint64(MappingField::kExactOffset, mapping.file_offset);
  message.add_uint64(MappingField::kPaths, path_iid);
  return iid;
}

uint64_t PerfettoCallstacks::Frame(profile::FrameId id, protozero::pbf_writer& out) {
  if (has_frame_[id]) return id;
  has_frame_[id] = true;
  const profile::Frame& frame = profile_.frames()[id];
  const uint64_t mapping_iid = MappingOf(frame, out);
  const uint64_t name_iid =
      Text(InternedField::kFunctionNames, ToUtf8(FrameName(profile_, id)), out);
  const profile::StringId file = profile_.functions()[frame.function].file;
  const uint64_t file_iid =
      file == profile::kNone ? 0
                             : Text(InternedField::kSourcePaths, ToUtf8(profile_.Text(file)), out);
  protozero::pbf_writer message(out, InternedField::kFrames);
  message.add_uint64(FrameField::kIid, id);
  message.add_uint64(FrameField::kFunctionName, name_iid);
  message.add_uint64(FrameField::kMapping, mapping_iid);
  message.add_uint64(FrameField::kRelativePc, frame.address);
  if (file_iid != 0) message.add_uint64(FrameField::kSourcePath, file_iid);
  if (frame.line != 0) message.add_uint32(FrameField::kLine, frame.line);
  return id;
}

uint64_t PerfettoCallstacks::Intern(profile::StackId stack, std::string& interned_data) {
  if (stack == profile::kNone || has_stack_[stack]) return stack;
  has_stack_[stack] = true;
  std::vector<profile::FrameId> frames = profile_.FramesOf(stack);
  if (frames.size() > frames_left_) {
    ++stacks_cut_;
    frames.resize(std::min(frames.size(), kMaxFramesOfCutStack));
  }
  frames_left_ -= std::min(frames_left_, frames.size());
  std::reverse(frames.begin(), frames.end());  // the outermost first
  protozero::pbf_writer out(interned_data);
  for (const profile::FrameId frame : frames) Frame(frame, out);
  protozero::pbf_writer message(out, InternedField::kCallstacks);
  message.add_uint64(CallstackField::kIid, stack);
  // Not packed: the field is declared as in proto2.
  for (const profile::FrameId frame : frames) message.add_uint64(CallstackField::kFrames, frame);
  return stack;
}

}  // namespace spanprof::format
