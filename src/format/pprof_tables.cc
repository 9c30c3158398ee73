#include "format/pprof_tables.h"

#include <limits>

#include "format/pprof_fields.h"

namespace spanprof::format::pprof {
namespace {

using protozero::pbf_reader;

// Real ones have a few dozen inlined functions at one address. The bound keeps a small file, whose
// samples all refer to one enormous location, from taking hours.
constexpr size_t kMaxLines = 1024;

uint32_t ToUint32(int64_t value) {
  const bool fits = value >= 0 && value <= std::numeric_limits<uint32_t>::max();
  return fits ? static_cast<uint32_t>(value) : 0;
}

}  // namespace

std::string_view Tables::Text(int64_t index) {
  if (index >= 0 && static_cast<uint64_t>(index) < strings_.size()) {
    return strings_[static_cast<size_t>(index)];
  }
  profile_.AddToCounter("pprof.bad_reference", 1);
  return {};
}
bool Tables::ReadStrings() {
  return cursor_.ForEach(ProfileField::kStringTable, protozero::pbf_wire_type::length_delimited,
                         [&](pbf_reader& top) {
                           const protozero::data_view view = top.get_view();
                           // Twice: a vector that grows is there twice.
                           if (!budget_.Take(2 * sizeof(std::string_view))) return false;
                           strings_.emplace_back(view.data(), view.size());
                           return true;
                         });
}

bool Tables::ReadRest() {
  return cursor_.ForEachMessage(ProfileField::kMapping, [&](pbf_reader message) {
    return ReadMapping(message);
  }) && cursor_.ForEachMessage(ProfileField::kFunction, [&](pbf_reader message) {
    return ReadFunction(message);
  }) && cursor_.ForEachMessage(ProfileField::kLocation, [&](pbf_reader message) {
    return ReadLocation(message);
  });
}

bool Tables::Remember(Numbers& numbers, uint64_t id, uint32_t number) {
  if (IsOverfull(profile_) || !budget_.Take(64)) return false;
  numbers[id] = number;
  return true;
}
uint32_t Tables::Find(const Numbers& numbers, uint64_t id) {
  if (id == 0) return profile::kNone;
  const auto found = numbers.find(id);
  if (found != numbers.end()) return found->second;
  profile_.AddToCounter("pprof.bad_reference", 1);
  return profile::kNone;
}

bool Tables::ReadMapping(pbf_reader message) {
  uint64_t id = 0;
  profile::Mapping mapping;
  uint64_t real_start = 0;
  uint64_t real_end = 0;
  uint64_t real_offset = 0;
  while (message.next()) {
    if (message.wire_type() != protozero::pbf_wire_type::varint) {
      message.skip();
      continue;
    }
    const protozero::pbf_tag_type field = message.tag();
    const uint64_t number = message.get_uint64();
    const auto index = static_cast<int64_t>(number);
    if (field == MappingField::kId) id = number;
    if (field == MappingField::kMemoryStart) mapping.start = number;
    if (field == MappingField::kMemoryLimit) mapping.end = number;
    if (field == MappingField::kFileOffset) mapping.file_offset = number;
    if (field == MappingField::kFilename) mapping.path = Intern(index);
    if (field == MappingField::kBuildId) mapping.build_id = Intern(index);
    if (field == MappingField::kRealStart || field == MappingField::kOldRealStart) {
      real_start = number;
    }
    if (field == MappingField::kRealEnd || field == MappingField::kOldRealEnd) {
      real_end = number;
    }
    if (field == MappingField::kRealFileOffset || field == MappingField::kOldRealFileOffset) {
      real_offset = number;
    }
  }
  const bool is_ours = mapping.start == 0 && mapping.end == ~uint64_t{0};
  if (is_ours) {
    mapping.start = real_start;
    mapping.end = real_end;
    mapping.file_offset = real_offset;
  }
  return Remember(mappings_, id, profile_.AddMapping(mapping));
}

bool Tables::ReadFunction(pbf_reader message) {
  uint64_t id = 0;
  profile::Function function;
  while (message.next()) {
    if (message.wire_type() != protozero::pbf_wire_type::varint) {
      message.skip();
      continue;
    }
    const protozero::pbf_tag_type field = message.tag();
    const int64_t number = message.get_int64();
    if (field == FunctionField::kId) id = static_cast<uint64_t>(number);
    if (field == FunctionField::kName) function.name = Intern(number);
    if (field == FunctionField::kSystemName) function.system_name = Intern(number);
    if (field == FunctionField::kFilename) function.file = Intern(number);
    if (field == FunctionField::kStartLine) function.start_line = ToUint32(number);
  }
  if (function.system_name == function.name) function.system_name = profile::kNone;
  return Remember(functions_, id, profile_.AddFunction(function));
}

profile::Frame Tables::ReadLine(pbf_reader message) {
  profile::Frame frame;
  while (message.next()) {
    if (message.wire_type() != protozero::pbf_wire_type::varint) {
      message.skip();
      continue;
    }
    const protozero::pbf_tag_type field = message.tag();
    const int64_t number = message.get_int64();
    if (field == LineField::kFunctionId) {
      frame.function = Find(functions_, static_cast<uint64_t>(number));
    }
    if (field == LineField::kLine) frame.line = ToUint32(number);
    if (field == LineField::kColumn) frame.column = ToUint32(number);
  }
  return frame;
}

bool Tables::ReadLocation(pbf_reader message) {
  uint64_t id = 0;
  profile::Frame shared;
  lines_.clear();
  while (message.next()) {
    using protozero::pbf_wire_type;
    switch (message.tag_and_type()) {
      case protozero::tag_and_type(LocationField::kId, pbf_wire_type::varint):
        id = message.get_uint64();
        break;
      case protozero::tag_and_type(LocationField::kMappingId, pbf_wire_type::varint):
        shared.mapping = Find(mappings_, message.get_uint64());
        break;
      case protozero::tag_and_type(LocationField::kAddress, pbf_wire_type::varint):
        shared.address = message.get_uint64();
        break;
      case protozero::tag_and_type(LocationField::kLine, pbf_wire_type::length_delimited):
        if (lines_.size() == kMaxLines) return cursor_.Broken("more than 1024 lines in a location");
        lines_.push_back(ReadLine(message.get_message()));
        break;
      case protozero::tag_and_type(LocationField::kFrameKind, pbf_wire_type::varint):
      case protozero::tag_and_type(LocationField::kOldFrameKind, pbf_wire_type::varint): {
        const uint64_t kind = message.get_uint64();
        constexpr auto kLast = static_cast<uint64_t>(profile::FrameKind::kMarker);
        if (kind <= kLast) shared.kind = static_cast<profile::FrameKind>(kind);
        break;
      }
      default:
        message.skip();
    }
  }
  if (lines_.empty()) lines_.emplace_back();
  if (!budget_.Take(64 + 2 * sizeof(profile::FrameId) * lines_.size())) return false;
  const auto first = static_cast<uint32_t>(location_frames_.size());
  for (size_t i = 0; i < lines_.size(); ++i) {
    profile::Frame frame = lines_[i];
    frame.kind = shared.kind;
    frame.mapping = shared.mapping;
    frame.address = shared.address;
    frame.inlined = i + 1 < lines_.size();
    location_frames_.push_back(profile_.AddFrame(frame));
  }
  locations_[id] = {first, static_cast<uint32_t>(lines_.size())};
  return !IsOverfull(profile_);
}

bool Tables::AddLocation(uint64_t id, std::vector<profile::FrameId>& frames) {
  const auto found = locations_.find(id);
  if (found == locations_.end()) {
    profile_.AddToCounter("pprof.bad_reference", 1);
    return true;
  }
  const FrameRange range = found->second;
  const auto begin = location_frames_.begin() + range.first;
  frames.insert(frames.end(), begin, begin + range.count);
  return frames.size() <= budget_.limit() / sizeof(profile::FrameId);
}

}  // namespace spanprof::format::pprof
