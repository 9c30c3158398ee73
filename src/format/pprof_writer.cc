// Writes pprof's profile.proto, gzip'ed.
//
// Samples and their times. pprof is an aggregated format: a sample is a stack, a set of labels, and
// sums. A label with the time on each sample makes a timeline possible (Datadog draws one), but no
// two samples can then be written as one, which without contexts makes the file ten times as large.
// So up to kMaxExactTimes samples (a minute of 16 cores at 100 Hz) each has its exact time; of
// more, those of one minute that differ in nothing else are summed, as Profile folds them, and have
// the minute. Either way a reader of ours gets the time back, and other tools see a number they
// ignore.
//
// Addresses. Frame::address is the ELF virtual address. pprof's tools expect the address in the
// process, from which they compute the former with the file's program headers; the model does not
// have what it takes to undo that for every layout. But they leave addresses alone in a mapping
// from 0 to 2^64-1 ("a fake mapping that spans the entire address space", as google/pprof's elfexec
// says), so that is what we write; the real bounds are in fields of ours, which other readers skip.

#include <limits>
#include <map>
#include <string>
#include <vector>

#include <protozero/pbf_writer.hpp>
#include <tsl/robin_map.h>

#include "format/format.h"
#include "format/format_locations.h"
#include "format/format_text.h"
#include "format/gzip.h"
#include "format/pprof_comments.h"
#include "format/pprof_fields.h"
#include "format/pprof_labels.h"
#include "profile/hashing.h"
#include "profile/names.h"
#include "profile/sample_fold.h"
#include "profile/string_table.h"

namespace spanprof::format {
namespace {

using namespace pprof;  // NOLINT(google-build-using-namespace): the field numbers

// A pprof sample before it is written: samples that differ at most in kind, count and value.
struct Entry {
  profile::Sample sample;  // of the first
  std::array<uint64_t, profile::kSampleKindCount> counts{};
  std::array<uint64_t, profile::kSampleKindCount> values{};
};

struct LabelHash {
  size_t operator()(const profile::Sample& s) const {
    return profile::HashValues(s.time_ns, uint64_t{s.thread} << 32 | s.context,
                               uint64_t{s.stack} << 32 | static_cast<uint64_t>(s.state) << 1 |
                                   static_cast<uint64_t>(s.folded));
  }
};
struct LabelEqual {
  bool operator()(const profile::Sample& a, const profile::Sample& b) const {
    return a.time_ns == b.time_ns && a.thread == b.thread && a.context == b.context &&
           a.stack == b.stack && a.state == b.state && a.folded == b.folded;
  }
};

std::vector<Entry> Aggregate(const profile::Profile& profile, const WriteOptions& options) {
  const bool exact =
      options.sample_times == SampleTimes::kExact ||
      (options.sample_times == SampleTimes::kAuto && profile.samples().size() <= kMaxExactTimes);
  std::vector<Entry> entries;
  tsl::robin_map<profile::Sample, size_t, LabelHash, LabelEqual> index;
  for (const profile::Sample& sample : profile.samples()) {
    profile::Sample key = sample;
    if (!exact) {
      key.time_ns = profile::MinuteOf(sample.time_ns);
      key.folded = false;
    }
    const auto [found, is_new] = index.insert({key, entries.size()});
    if (is_new) entries.push_back({.sample = sample, .counts = {}, .values = {}});
    Entry& entry = entries[found->second];
    if (entry.sample.time_ns != sample.time_ns || entry.sample.folded != sample.folded) {
      entry.sample.time_ns = key.time_ns;
      entry.sample.folded = true;
    }
    entry.counts[static_cast<size_t>(sample.kind)] += sample.count;
    entry.values[static_cast<size_t>(sample.kind)] += sample.value;
  }
  return entries;
}

class Writer {
 public:
  Writer(const profile::Profile& profile, const WriteOptions& options)
      : profile_(profile), options_(options), locations_(profile), out_(bytes_) {}

  std::string Write() {
    const std::vector<Entry> entries = Aggregate(profile_, options_);
    ChooseKinds(entries);
    WriteSampleTypes();
    WriteSamples(entries);
    CollectMappings();
    WriteMappings();
    WriteLocations();
    WriteFunctions();
    WriteHead();
    // Last, when all strings are known.
    for (uint32_t i = 0; i < strings_.size(); ++i) {
      out_.add_string(ProfileField::kStringTable, ToUtf8(strings_.Text(i)));
    }
    return std::move(bytes_);
  }

 private:
  int64_t Text(std::string_view text) {
    const auto found = strings_.Find(text);
    return found ? *found : strings_.Add(text);
  }

  // Those of which there are samples or a period.
  void ChooseKinds(const std::vector<Entry>& entries) {
    for (size_t kind = 0; kind < profile::kSampleKindCount; ++kind) {
      bool used = profile_.periods[kind] != profile::Period{};
      for (const Entry& entry : entries) {
        used |= entry.counts[kind] != 0 || entry.values[kind] != 0;
      }
      if (used) kinds_.push_back(kind);
    }
    // A profile without any sample type is not valid.
    if (kinds_.empty()) kinds_.push_back(0);
  }

  void WriteValueType(protozero::pbf_tag_type field, std::string_view type, std::string_view unit) {
    protozero::pbf_writer value_type(out_, field);
    value_type.add_int64(ValueTypeField::kType, Text(type));
    value_type.add_int64(ValueTypeField::kUnit, Text(unit));
  }

  void WriteSampleTypes() {
    for (const size_t kind : kinds_) {
      WriteValueType(ProfileField::kSampleType, kValueNames[kind].count, "count");
      WriteValueType(ProfileField::kSampleType, kValueNames[kind].value,
                     UnitOf(static_cast<profile::SampleKind>(kind)));
    }
  }

  void WriteSamples(const std::vector<Entry>& entries) {
    LabelMaker label_maker(profile_, options_);
    std::vector<std::vector<uint32_t>> locations_of_stack(profile_.stacks().size());
    std::vector<int64_t> values;
    for (const Entry& entry : entries) {
      auto& locations = locations_of_stack[entry.sample.stack];
      if (locations.empty()) locations = locations_.LocationsOf(entry.sample.stack);
      values.clear();
      for (const size_t kind : kinds_) {
        values.push_back(static_cast<int64_t>(entry.counts[kind]));
        values.push_back(static_cast<int64_t>(entry.values[kind]));
      }
      protozero::pbf_writer sample(out_, ProfileField::kSample);
      sample.add_packed_uint64(SampleField::kLocationId, locations.begin(), locations.end());
      sample.add_packed_int64(SampleField::kValue, values.begin(), values.end());
      for (const Label& label : label_maker.LabelsOf(entry.sample)) WriteLabel(sample, label);
    }
  }

  void WriteLabel(protozero::pbf_writer& sample, const Label& label) {
    protozero::pbf_writer out(sample, SampleField::kLabel);
    out.add_int64(LabelField::kKey, Text(label.key));
    if (!label.text.empty()) {
      out.add_int64(LabelField::kStr, Text(label.text));
      return;
    }
    out.add_int64(LabelField::kNum, static_cast<int64_t>(label.number));
    if (!label.unit.empty()) out.add_int64(LabelField::kNumUnit, Text(label.unit));
  }

  // What pprof's flags of a mapping are about: whether all that lies in it is known.
  struct MappingUse {
    bool used = false;
    bool has_functions = true;
    bool has_lines = true;
    bool has_inlined = false;
  };

  void CollectMappings() {
    uses_.resize(profile_.mappings().size());
    used_functions_.resize(profile_.functions().size());
    for (const auto& location : locations_.locations()) {
      for (const profile::FrameId id : location) {
        const profile::Frame& frame = profile_.frames()[id];
        MappingUse& use = uses_[frame.mapping];
        use.used = true;
        use.has_functions &= frame.function != profile::kNone;
        use.has_lines &= frame.line != 0;
        use.has_inlined |= frame.inlined;
        used_functions_[frame.function] = true;
      }
    }
  }

  void WriteMappings() {
    for (profile::MappingId id = 1; id < uses_.size(); ++id) {
      if (!uses_[id].used) continue;
      const profile::Mapping& mapping = profile_.mappings()[id];
      protozero::pbf_writer out(out_, ProfileField::kMapping);
      out.add_uint64(MappingField::kId, id);
      out.add_uint64(MappingField::kMemoryLimit, std::numeric_limits<uint64_t>::max());
      out.add_int64(MappingField::kFilename, Text(profile_.Text(mapping.path)));
      out.add_int64(MappingField::kBuildId, Text(profile_.Text(mapping.build_id)));
      out.add_bool(MappingField::kHasFunctions, uses_[id].has_functions);
      out.add_bool(MappingField::kHasFilenames, uses_[id].has_lines);
      out.add_bool(MappingField::kHasLineNumbers, uses_[id].has_lines);
      out.add_bool(MappingField::kHasInlineFrames, uses_[id].has_inlined);
      out.add_uint64(MappingField::kRealStart, mapping.start);
      out.add_uint64(MappingField::kRealEnd, mapping.end);
      out.add_uint64(MappingField::kRealFileOffset, mapping.file_offset);
    }
  }

  void WriteLocations() {
    uint64_t number = 0;
    for (const auto& location : locations_.locations()) {
      const profile::Frame& outer = profile_.frames()[location.back()];
      protozero::pbf_writer out(out_, ProfileField::kLocation);
      out.add_uint64(LocationField::kId, ++number);
      if (outer.mapping != 0) out.add_uint64(LocationField::kMappingId, outer.mapping);
      if (outer.address != 0) out.add_uint64(LocationField::kAddress, outer.address);
      for (const profile::FrameId id : location) {
        const profile::Frame& frame = profile_.frames()[id];
        // A line without a function makes the file invalid for Go.
        if (frame.function == profile::kNone) continue;
        protozero::pbf_writer line(out, LocationField::kLine);
        line.add_uint64(LineField::kFunctionId, frame.function);
        if (frame.line != 0) line.add_int64(LineField::kLine, frame.line);
        if (frame.column != 0) line.add_int64(LineField::kColumn, frame.column);
      }
      if (outer.kind != profile::FrameKind::kNative) {
        out.add_uint32(LocationField::kFrameKind, static_cast<uint32_t>(outer.kind));
      }
    }
  }

  void WriteFunctions() {
    for (profile::FunctionId id = 1; id < used_functions_.size(); ++id) {
      if (!used_functions_[id]) continue;
      const profile::Function& function = profile_.functions()[id];
      const profile::StringId system_name =
          function.system_name != profile::kNone ? function.system_name : function.name;
      protozero::pbf_writer out(out_, ProfileField::kFunction);
      out.add_uint64(FunctionField::kId, id);
      out.add_int64(FunctionField::kName, Text(profile_.Text(function.name)));
      out.add_int64(FunctionField::kSystemName, Text(profile_.Text(system_name)));
      out.add_int64(FunctionField::kFilename, Text(profile_.Text(function.file)));
      if (function.start_line != 0) out.add_int64(FunctionField::kStartLine, function.start_line);
    }
  }

  void WriteHead() {
    out_.add_int64(ProfileField::kTimeNanos, static_cast<int64_t>(profile_.start_time_ns));
    out_.add_int64(ProfileField::kDurationNanos, static_cast<int64_t>(profile_.duration_ns));
    const size_t first = kinds_.front();
    const profile::Period& period = profile_.periods[first];
    WriteValueType(ProfileField::kPeriodType, kValueNames[first].value,
                   UnitOf(static_cast<profile::SampleKind>(first)));
    out_.add_int64(
        ProfileField::kPeriod,
        static_cast<int64_t>(period.actual_ns != 0 ? period.actual_ns : period.requested_ns));
    for (const std::string& comment : CommentsOf(profile_)) {
      out_.add_int64(ProfileField::kComment, Text(comment));
    }
    out_.add_int64(ProfileField::kDefaultSampleType, Text(kValueNames[first].value));
  }

  const profile::Profile& profile_;
  const WriteOptions& options_;
  std::vector<size_t> kinds_;
  LocationTable locations_;
  std::vector<MappingUse> uses_;      // by MappingId
  std::vector<bool> used_functions_;  // by FunctionId
  profile::StringTable strings_;
  std::string bytes_;
  protozero::pbf_writer out_;  // into bytes_
};

}  // namespace

Result<std::string> WritePprof(const profile::Profile& profile, const WriteOptions& options) {
  return Compress(Writer(profile, options).Write());
}

}  // namespace spanprof::format
