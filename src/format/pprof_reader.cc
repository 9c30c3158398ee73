// Reads pprof's profile.proto, gzip'ed or plain, ours or anyone's. The file is hostile: everything
// that refers to something is checked, and nothing is kept that the limits do not allow.
//
// The tables of a file may stand in any order, so the top level is walked once for each: strings
// first, then what refers to them, at last the samples.

#include <cerrno>
#include <exception>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_reader.hpp>
#include <tsl/robin_map.h>

#include "base/printable_text.h"
#include "format/format.h"
#include "format/format_budget.h"
#include "format/format_text.h"
#include "format/gzip.h"
#include "format/pprof_comments.h"
#include "format/pprof_fields.h"
#include "format/pprof_label_reader.h"
#include "format/pprof_value_types.h"

namespace spanprof::format {
namespace {

using namespace pprof;  // NOLINT(google-build-using-namespace): the field numbers
using protozero::pbf_reader;

// Real ones have a few dozen inlined functions at one address. The bound keeps a small file, whose
// samples all refer to one enormous location, from taking hours.
constexpr size_t kMaxLines = 1024;
constexpr size_t kMaxValueTypes = 64;
constexpr size_t kSamplesPerCheck = 4096;

uint32_t ToUint32(int64_t value) {
  const bool fits = value >= 0 && value <= std::numeric_limits<uint32_t>::max();
  return fits ? static_cast<uint32_t>(value) : 0;
}

class Reader {
 public:
  Reader(std::string_view bytes, const ReadLimits& limits)
      : bytes_(bytes), budget_(limits.max_memory), profile_(limits.max_memory) {}

  Result<profile::Profile> Read() {
    try {
      if (!ReadStrings() || !ReadTypesAndComments() || !ReadTables() || !ReadLocations()) {
        return Failure();
      }
      if (!ReadSamples()) return Failure();
    } catch (const protozero::exception& error) {
      return Fail(EINVAL, "not a pprof file, or a broken one: at byte " + std::to_string(offset_) +
                              " of what it holds: " + error.what());
    }
    if (strings_.empty() || strings_.front() != "") {
      return Fail(EINVAL,
                  "not a pprof file, or a broken one: its string table does not begin with "
                  "the empty string");
    }
    if (types_.empty()) return Fail(EINVAL, "not a pprof file: it has no sample types");
    // Only now: the counters may say the same of the profile that was written.
    for (const std::string_view comment : comments_) ReadComment(comment, profile_);
    return std::move(profile_);
  }

 private:
  // Calls `handle` with the reader at each field of the top level with this number.
  template <class Handle>
  bool ForEach(protozero::pbf_tag_type field, protozero::pbf_wire_type wire_type, Handle handle) {
    pbf_reader top(bytes_.data(), bytes_.size());
    while (true) {
      offset_ = bytes_.size() - top.length();
      if (!top.next()) return true;
      if (top.tag() != field || top.wire_type() != wire_type) {
        top.skip();
      } else if (!handle(top)) {
        return false;
      }
    }
  }
  template <class Handle>
  bool ForEachMessage(protozero::pbf_tag_type field, Handle handle) {
    return ForEach(field, protozero::pbf_wire_type::length_delimited,
                   [&](pbf_reader& top) { return handle(top.get_message()); });
  }

  tl::unexpected<Error> Failure() const {
    if (!problem_.empty()) {
      return Fail(EINVAL,
                  "broken pprof file: at byte " + std::to_string(offset_) + ": " + problem_);
    }
    return TooLarge("the pprof file", budget_.limit());
  }
  bool Broken(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  std::string_view Text(int64_t index) {
    if (index >= 0 && static_cast<uint64_t>(index) < strings_.size()) {
      return strings_[static_cast<size_t>(index)];
    }
    profile_.AddToCounter("pprof.bad_reference", 1);
    return {};
  }
  profile::StringId Intern(int64_t index) { return profile_.Intern(Text(index)); }

  bool ReadStrings() {
    return ForEach(ProfileField::kStringTable, protozero::pbf_wire_type::length_delimited,
                   [&](pbf_reader& top) {
                     const protozero::data_view view = top.get_view();
                     // Twice: a vector that grows is there twice.
                     if (!budget_.Take(2 * sizeof(std::string_view))) return false;
                     strings_.emplace_back(view.data(), view.size());
                     return true;
                   });
  }

  ValueType ReadValueType(pbf_reader message) {
    ValueType type;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case protozero::tag_and_type(ValueTypeField::kType, protozero::pbf_wire_type::varint):
          type.type = Text(message.get_int64());
          break;
        case protozero::tag_and_type(ValueTypeField::kUnit, protozero::pbf_wire_type::varint):
          type.unit = Text(message.get_int64());
          break;
        default:
          message.skip();
      }
    }
    return type;
  }

  bool AddComment(int64_t index) {
    const std::string_view comment = Text(index);
    // A resource attribute is kept outside of the profile's own budget.
    if (!budget_.Take(comment.size() + sizeof(profile::Attribute) + sizeof(comment))) return false;
    comments_.push_back(comment);
    return true;
  }

  bool ReadTypesAndComments() {
    ValueType period_type;
    uint64_t period = 0;
    pbf_reader top(bytes_.data(), bytes_.size());
    while (true) {
      offset_ = bytes_.size() - top.length();
      if (!top.next()) break;
      using protozero::pbf_wire_type;
      switch (top.tag_and_type()) {
        case protozero::tag_and_type(ProfileField::kSampleType, pbf_wire_type::length_delimited):
          if (types_.size() == kMaxValueTypes) return Broken("too many sample types");
          types_.push_back(ReadValueType(top.get_message()));
          break;
        case protozero::tag_and_type(ProfileField::kPeriodType, pbf_wire_type::length_delimited):
          period_type = ReadValueType(top.get_message());
          break;
        case protozero::tag_and_type(ProfileField::kPeriod, pbf_wire_type::varint):
          period = top.get_uint64();
          break;
        case protozero::tag_and_type(ProfileField::kTimeNanos, pbf_wire_type::varint):
          profile_.start_time_ns = top.get_uint64();
          break;
        case protozero::tag_and_type(ProfileField::kDurationNanos, pbf_wire_type::varint):
          profile_.duration_ns = top.get_uint64();
          break;
        case protozero::tag_and_type(ProfileField::kComment, pbf_wire_type::varint):
          if (!AddComment(top.get_int64())) return false;
          break;
        case protozero::tag_and_type(ProfileField::kComment, pbf_wire_type::length_delimited):
          for (const int64_t index : top.get_packed_int64()) {
            if (!AddComment(index)) return false;
          }
          break;
        default:
          top.skip();
      }
    }
    meanings_ = MeaningsOf(types_);
    const auto period_meaning = MeaningsOf({period_type});
    for (size_t i = 0; i < types_.size(); ++i) {
      if (!meanings_[i].kind) profile_.AddToCounter("pprof.unknown_sample_type", 1);
    }
    // Ours say it better, in the comments; these are read first, and this only fills the gap.
    if (period != 0 && period_meaning[0].kind && !period_meaning[0].is_count) {
      const size_t kind = static_cast<size_t>(*period_meaning[0].kind);
      profile_.periods[kind].actual_ns = period * period_meaning[0].scale;
    }
    // The tags' positions have to be known before the samples are read.
    for (const std::string_view comment : comments_) {
      if (comment.substr(0, 19) == "spanprof.attribute.") ReadComment(comment, profile_);
    }
    return true;
  }

  bool ReadTables() {
    const auto read_mapping = [&](pbf_reader message) {
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
        if (field == MappingField::kRealStart) real_start = number;
        if (field == MappingField::kRealEnd) real_end = number;
        if (field == MappingField::kRealFileOffset) real_offset = number;
      }
      const bool is_ours = mapping.start == 0 && mapping.end == ~uint64_t{0};
      if (is_ours) {
        mapping.start = real_start;
        mapping.end = real_end;
        mapping.file_offset = real_offset;
      }
      return Remember(mappings_, id, profile_.AddMapping(mapping));
    };
    const auto read_function = [&](pbf_reader message) {
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
    };
    return ForEachMessage(ProfileField::kMapping, read_mapping) &&
           ForEachMessage(ProfileField::kFunction, read_function);
  }

  using Numbers = tsl::robin_map<uint64_t, uint32_t>;  // by the file's own

  bool Remember(Numbers& numbers, uint64_t id, uint32_t number) {
    if (IsOverfull(profile_) || !budget_.Take(64)) return false;
    numbers[id] = number;
    return true;
  }
  uint32_t Find(const Numbers& numbers, uint64_t id) {
    if (id == 0) return profile::kNone;
    const auto found = numbers.find(id);
    if (found != numbers.end()) return found->second;
    profile_.AddToCounter("pprof.bad_reference", 1);
    return profile::kNone;
  }

  profile::Frame ReadLine(pbf_reader message) {
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

  bool ReadLocations() {
    std::vector<profile::Frame> lines;
    return ForEachMessage(ProfileField::kLocation, [&](pbf_reader message) {
      uint64_t id = 0;
      profile::Frame shared;
      lines.clear();
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
            if (lines.size() == kMaxLines) return Broken("more than 1024 lines in a location");
            lines.push_back(ReadLine(message.get_message()));
            break;
          case protozero::tag_and_type(LocationField::kFrameKind, pbf_wire_type::varint): {
            const uint64_t kind = message.get_uint64();
            constexpr auto kLast = static_cast<uint64_t>(profile::FrameKind::kMarker);
            if (kind <= kLast) shared.kind = static_cast<profile::FrameKind>(kind);
            break;
          }
          default:
            message.skip();
        }
      }
      if (lines.empty()) lines.emplace_back();
      if (!budget_.Take(64 + 2 * sizeof(profile::FrameId) * lines.size())) return false;
      const auto first = static_cast<uint32_t>(location_frames_.size());
      for (size_t i = 0; i < lines.size(); ++i) {
        profile::Frame frame = lines[i];
        frame.kind = shared.kind;
        frame.mapping = shared.mapping;
        frame.address = shared.address;
        frame.inlined = i + 1 < lines.size();
        location_frames_.push_back(profile_.AddFrame(frame));
      }
      locations_[id] = {first, static_cast<uint32_t>(lines.size())};
      return !IsOverfull(profile_);
    });
  }

  struct FrameRange {
    uint32_t first = 0;
    uint32_t count = 0;
  };

  // Puts the frames of the location behind the others, innermost first.
  bool AddLocation(uint64_t id, std::vector<profile::FrameId>& frames) {
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

  void ReadLabel(pbf_reader message, LabelReader& labels) {
    uint64_t key = 0;
    uint64_t text = 0;
    uint64_t number = 0;
    while (message.next()) {
      if (message.wire_type() != protozero::pbf_wire_type::varint) {
        message.skip();
        continue;
      }
      const protozero::pbf_tag_type field = message.tag();
      const uint64_t value = message.get_uint64();
      if (field == LabelField::kKey) key = value;
      if (field == LabelField::kStr) text = value;
      if (field == LabelField::kNum) number = value;
    }
    labels.Add(key, text, number);
  }

  bool ReadSamples() {
    LabelReader labels(strings_, profile_);
    std::vector<profile::FrameId> frames;
    std::vector<int64_t> values;
    size_t until_check = kSamplesPerCheck;
    const bool complete = ForEachMessage(ProfileField::kSample, [&](pbf_reader message) {
      frames.clear();
      values.clear();
      labels.BeginSample();
      while (message.next()) {
        using protozero::pbf_wire_type;
        switch (message.tag_and_type()) {
          case protozero::tag_and_type(SampleField::kLocationId, pbf_wire_type::length_delimited):
            for (const uint64_t id : message.get_packed_uint64()) {
              if (!AddLocation(id, frames)) return false;
            }
            break;
          case protozero::tag_and_type(SampleField::kLocationId, pbf_wire_type::varint):
            if (!AddLocation(message.get_uint64(), frames)) return false;
            break;
          case protozero::tag_and_type(SampleField::kValue, pbf_wire_type::length_delimited):
            for (const int64_t value : message.get_packed_int64()) AddValue(value, values);
            break;
          case protozero::tag_and_type(SampleField::kValue, pbf_wire_type::varint):
            AddValue(message.get_int64(), values);
            break;
          case protozero::tag_and_type(SampleField::kLabel, pbf_wire_type::length_delimited):
            ReadLabel(message.get_message(), labels);
            break;
          default:
            message.skip();
        }
      }
      AddSamples(frames, values, labels);
      if (--until_check != 0) return true;
      until_check = kSamplesPerCheck;
      return !IsOverfull(profile_);
    });
    return complete && !IsOverfull(profile_);
  }

  void AddValue(int64_t value, std::vector<int64_t>& values) {
    if (values.size() < meanings_.size()) values.push_back(value);
  }

  // One for each kind that has a count or a value.
  void AddSamples(std::vector<profile::FrameId>& frames, const std::vector<int64_t>& values,
                  LabelReader& labels) {
    std::array<profile::Sample, profile::kSampleKindCount> by_kind{};
    std::array<bool, profile::kSampleKindCount> has_count{};
    for (profile::Sample& sample : by_kind) sample.count = 0;
    bool any = false;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!meanings_[i].kind || values[i] == 0) continue;
      if (values[i] < 0 && !meanings_[i].is_count && types_[i].unit.empty()) continue;
      const auto kind = static_cast<size_t>(*meanings_[i].kind);
      const auto value = static_cast<uint64_t>(values[i]);
      if (meanings_[i].is_count) {
        by_kind[kind].count += value;
        has_count[kind] = true;
      } else {
        by_kind[kind].value += value * meanings_[i].scale;
      }
      any = true;
    }
    if (!any) return;
    std::reverse(frames.begin(), frames.end());
    profile::Sample shared;
    shared.stack = profile_.AddStack(frames);
    labels.EndSample(shared);
    for (size_t kind = 0; kind < by_kind.size(); ++kind) {
      if (by_kind[kind].count == 0 && by_kind[kind].value == 0) continue;
      shared.kind = static_cast<profile::SampleKind>(kind);
      shared.count = by_kind[kind].count;
      shared.value = by_kind[kind].value;
      if (shared.count == 0 && !KindHasCount(kind)) shared.count = 1;
      profile_.AddSample(shared);
    }
  }

  // Whether the file has counts of this kind. Where it has not, each sample is one.
  bool KindHasCount(size_t kind) const {
    for (const ValueMeaning& meaning : meanings_) {
      if (meaning.is_count && meaning.kind && static_cast<size_t>(*meaning.kind) == kind) {
        return true;
      }
    }
    return false;
  }

  std::string_view bytes_;
  ReadBudget budget_;
  profile::Profile profile_;
  size_t offset_ = 0;  // of the top-level field that is being read
  std::string problem_;
  std::vector<std::string_view> strings_;
  std::vector<ValueType> types_;
  std::vector<ValueMeaning> meanings_;  // of types_
  std::vector<std::string_view> comments_;
  Numbers mappings_, functions_;
  tsl::robin_map<uint64_t, FrameRange> locations_;
  std::vector<profile::FrameId> location_frames_;
};

}  // namespace

Result<profile::Profile> ReadPprof(std::string_view bytes, const ReadLimits& limits) {
  if (!IsGzip(bytes)) return Reader(bytes, limits).Read();
  const Result<std::string> plain = Decompress(bytes, limits.max_uncompressed);
  if (!plain) return tl::make_unexpected(plain.error());
  return Reader(*plain, limits).Read();
}

}  // namespace spanprof::format
