// Reads pprof's profile.proto, gzip'ed or plain, ours or anyone's. The file is hostile: everything
// that refers to something is checked, and nothing is kept that the limits do not allow.
//
// The tables of a file may stand in any order, so the top level is walked once for each: strings
// first, then what refers to them, at last the samples.

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "format/format.h"
#include "format/format_budget.h"
#include "format/gzip.h"
#include "format/pprof_comments.h"
#include "format/pprof_cursor.h"
#include "format/pprof_fields.h"
#include "format/pprof_label_reader.h"
#include "format/pprof_tables.h"
#include "format/pprof_value_types.h"

namespace spanprof::format {
namespace {

using namespace pprof;  // NOLINT(google-build-using-namespace): the field numbers
using protozero::pbf_reader;

constexpr size_t kMaxValueTypes = 64;
constexpr size_t kSamplesPerCheck = 4096;

class Reader {
 public:
  Reader(std::string_view bytes, const ReadLimits& limits)
      : cursor_(bytes),
        budget_(limits.max_memory),
        profile_(limits.max_memory),
        tables_(cursor_, budget_, profile_) {}

  Result<profile::Profile> Read() {
    try {
      if (!tables_.ReadStrings()) return Failure();
      if (tables_.strings().empty() || !tables_.strings().front().empty()) {
        return Fail(EINVAL,
                    "not a pprof file, or a broken one: its string table does not begin with the "
                    "empty string");
      }
      if (!ReadTypesAndComments()) return Failure();
      if (types_.empty()) return Fail(EINVAL, "not a pprof file: it has no sample types");
      if (!tables_.ReadRest() || !ReadSamples()) return Failure();
    } catch (const protozero::exception& error) {
      return Fail(EINVAL, "not a pprof file, or a broken one: at byte " +
                              std::to_string(cursor_.offset()) +
                              " of what it holds: " + error.what());
    }
    // Only now: the counters may say the same of the profile that was written.
    for (const std::string_view comment : comments_) ReadComment(comment, profile_);
    return std::move(profile_);
  }

 private:
  tl::unexpected<Error> Failure() const {
    if (!cursor_.problem().empty()) {
      return Fail(EINVAL, "broken pprof file: at byte " + std::to_string(cursor_.offset()) +
                              " of what it holds: " + cursor_.problem());
    }
    return TooLarge("the pprof file", budget_.limit());
  }

  ValueType ReadValueType(pbf_reader message) {
    ValueType type;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case protozero::tag_and_type(ValueTypeField::kType, protozero::pbf_wire_type::varint):
          type.type = tables_.Text(message.get_int64());
          break;
        case protozero::tag_and_type(ValueTypeField::kUnit, protozero::pbf_wire_type::varint):
          type.unit = tables_.Text(message.get_int64());
          break;
        default:
          message.skip();
      }
    }
    return type;
  }

  bool AddComment(int64_t index) {
    const std::string_view comment = tables_.Text(index);
    // A resource attribute is kept outside of the profile's own budget.
    if (!budget_.Take(comment.size() + sizeof(profile::Attribute) + sizeof(comment))) return false;
    comments_.push_back(comment);
    return true;
  }

  bool ReadTypesAndComments() {
    ValueType period_type;
    uint64_t period = 0;
    const auto read_field = [&](pbf_reader& top) {
      using protozero::pbf_wire_type;
      switch (top.tag_and_type()) {
        case protozero::tag_and_type(ProfileField::kSampleType, pbf_wire_type::length_delimited):
          if (types_.size() == kMaxValueTypes) return cursor_.Broken("too many sample types");
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
      return true;
    };
    if (!cursor_.ForEachField(read_field)) return false;
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
    LabelReader labels(tables_.strings(), profile_);
    std::vector<profile::FrameId> frames;
    std::vector<int64_t> values;
    size_t until_check = kSamplesPerCheck;
    const bool complete = cursor_.ForEachMessage(ProfileField::kSample, [&](pbf_reader message) {
      frames.clear();
      values.clear();
      labels.BeginSample();
      while (message.next()) {
        using protozero::pbf_wire_type;
        switch (message.tag_and_type()) {
          case protozero::tag_and_type(SampleField::kLocationId, pbf_wire_type::length_delimited):
            for (const uint64_t id : message.get_packed_uint64()) {
              if (!tables_.AddLocation(id, frames)) return false;
            }
            break;
          case protozero::tag_and_type(SampleField::kLocationId, pbf_wire_type::varint):
            if (!tables_.AddLocation(message.get_uint64(), frames)) return false;
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
    for (profile::Sample& sample : by_kind) sample.count = 0;
    bool any = false;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!meanings_[i].kind || values[i] == 0) continue;
      if (values[i] < 0) {
        // The difference of two profiles has such; the model has not.
        profile_.AddToCounter("pprof.negative_value", 1);
        continue;
      }
      const auto kind = static_cast<size_t>(*meanings_[i].kind);
      const auto value = static_cast<uint64_t>(values[i]);
      if (meanings_[i].is_count) {
        by_kind[kind].count += value;
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

  Cursor cursor_;
  ReadBudget budget_;
  profile::Profile profile_;
  Tables tables_;
  std::vector<ValueType> types_;
  std::vector<ValueMeaning> meanings_;  // of types_
  std::vector<std::string_view> comments_;
};

}  // namespace

Result<profile::Profile> ReadPprof(std::string_view bytes, const ReadLimits& limits) {
  if (!IsGzip(bytes)) return Reader(bytes, limits).Read();
  const Result<std::string> plain = Decompress(bytes, limits.max_uncompressed);
  if (!plain) return tl::make_unexpected(plain.error());
  return Reader(*plain, limits).Read();
}

}  // namespace spanprof::format
