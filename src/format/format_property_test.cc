// What holds for every profile and every format: what a format can hold comes back, and whatever
// bytes a reader gets, it answers.

#include <algorithm>
#include <map>
#include <rapidcheck.h>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "format/format.h"
#include "format/gzip.h"
#include "profile/names.h"
#include "profile/profile_query.h"
#include "profile/profile_testing.h"

namespace spanprof::format {
namespace {

using profile::DescribeHead;
using profile::DescribeSamples;
using profile::Profile;

Profile AnyProfile() {
  const Profile made =
      profile::RandomProfile(*rc::gen::arbitrary<uint64_t>(),
                             {.sample_count = static_cast<size_t>(*rc::gen::inRange(0, 60)),
                              .variety = static_cast<size_t>(*rc::gen::inRange(1, 30)),
                              .max_depth = static_cast<size_t>(*rc::gen::inRange(0, 10))});
  // Endpoints of roots that no sample has are not written.
  return Select(made, {});
}

std::vector<LabelScheme> AnyLabels() {
  using Labels = std::vector<LabelScheme>;
  return *rc::gen::elementOf(std::vector<Labels>{
      {},
      {LabelScheme::kDatadog},
      {LabelScheme::kPyroscope},
      {LabelScheme::kDatadog, LabelScheme::kPyroscope},
  });
}

void CheckRoundTrip(const Profile& profile, OutputFormat format, const WriteOptions& options) {
  const auto bytes = WriteProfile(profile, format, options);
  RC_ASSERT(bytes.has_value());
  RC_ASSERT(FormatOfBytes(*bytes).value() == format);
  const auto back = ReadProfile(*bytes, format, {});
  if (!back) RC_FAIL(back.error().message);
  RC_ASSERT(DescribeHead(*back) == DescribeHead(profile));
  RC_ASSERT(DescribeSamples(*back) == DescribeSamples(profile));
  // And what was read is written the same way.
  const auto again = ReadProfile(*WriteProfile(*back, format, options), format, {});
  RC_ASSERT(again.has_value());
  RC_ASSERT(DescribeSamples(*again) == DescribeSamples(profile));
}

RC_GTEST_PROP(FormatProperty, PprofComesBack, ()) {
  WriteOptions options;
  options.labels = AnyLabels();
  CheckRoundTrip(AnyProfile(), OutputFormat::kPprof, options);
}

RC_GTEST_PROP(FormatProperty, PprofByMinuteKeepsAllButTheTime, ()) {
  const Profile profile = AnyProfile();
  WriteOptions options;
  options.sample_times = SampleTimes::kMinute;
  const auto back = ReadPprof(*WritePprof(profile, options), {});
  RC_ASSERT(back.has_value());
  const profile::Ignore ignore{.time = true, .minute = false, .folded = true};
  RC_ASSERT(DescribeSamples(*back, ignore) == DescribeSamples(profile, ignore));
}

RC_GTEST_PROP(FormatProperty, OtlpComesBack, ()) {
  const Profile profile = AnyProfile();
  CheckRoundTrip(profile, OutputFormat::kOtlp, {});
  const auto back = ReadOtlp(*WriteOtlp(profile, {}), {});
  RC_ASSERT(back->samples().size() == profile.samples().size());
}

RC_GTEST_PROP(FormatProperty, FoldedKeepsNamesAndValues, ()) {
  const Profile profile = AnyProfile();
  const auto kind = static_cast<profile::SampleKind>(*rc::gen::inRange(0, 4));
  WriteOptions options;
  options.kind = kind;
  const auto names_of = [](const Profile& p, profile::SampleKind wanted) {
    std::map<std::vector<std::string>, uint64_t> sums;
    for (const profile::Sample& sample : p.samples()) {
      if (sample.kind != wanted || sample.value == 0) continue;
      std::vector<std::string> names;
      for (const profile::FrameId frame : p.FramesOf(sample.stack)) {
        names.push_back(FrameName(p, frame));
      }
      sums[names] += sample.value;
    }
    return sums;
  };
  const auto expected = names_of(profile, kind);
  RC_PRE(!expected.empty());
  const auto back = ReadFolded(*WriteFolded(profile, options), {});
  RC_ASSERT(back.has_value());
  RC_ASSERT(names_of(*back, profile::SampleKind::kCpu) == expected);
}

// Whatever is done to a file: an answer, an error that says something, and never more memory.
RC_GTEST_PROP(FormatProperty, DamagedFilesAreReadOrRefused, ()) {
  const Profile profile = AnyProfile();
  const auto format =
      *rc::gen::element(OutputFormat::kPprof, OutputFormat::kOtlp, OutputFormat::kFolded);
  std::string bytes = *WriteProfile(profile, format, {});
  if (format == OutputFormat::kPprof) bytes = *Decompress(bytes, 1 << 30);
  const int changes = *rc::gen::inRange(1, 6);
  for (int i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = *rc::gen::inRange<size_t>(0, bytes.size());
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        bytes[at] = *rc::gen::arbitrary<char>();
        break;
      case 1:
        bytes.erase(at, *rc::gen::inRange<size_t>(1, 20));
        break;
      default:
        bytes.insert(at, bytes.substr(*rc::gen::inRange<size_t>(0, bytes.size()), 30));
    }
  }
  static_cast<void>(FormatOfBytes(bytes));
  const ReadLimits limits{.max_memory = 1 << 20, .max_uncompressed = 1 << 20};
  const auto result = ReadProfile(bytes, format, limits);
  if (!result) {
    RC_ASSERT(!result.error().message.empty());
    RC_ASSERT(result.error().code != 0);
  } else {
    RC_ASSERT(result->memory_used() <= limits.max_memory);
  }
}

RC_GTEST_PROP(FormatProperty, AnyBytesAreReadOrRefused, (const std::string& bytes)) {
  for (const OutputFormat format :
       {OutputFormat::kPprof, OutputFormat::kOtlp, OutputFormat::kFolded}) {
    const auto result = ReadProfile(bytes, format, {});
    RC_ASSERT(result || !result.error().message.empty());
  }
  static_cast<void>(FormatOfBytes(bytes));
}

}  // namespace
}  // namespace spanprof::format
