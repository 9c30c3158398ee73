#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "format/format.h"
#include "format/gzip.h"
#include "format/pprof_fields.h"
#include "profile/names.h"
#include "profile/profile_query.h"
#include "profile/profile_testing.h"
#include "profile/sample_fold.h"

namespace spanprof::format {
namespace {

using profile::Profile;
using profile::SampleKind;
using ::testing::HasSubstr;
using ::testing::Not;

// One sample of a request, with everything.
Profile OneSample() {
  Profile profile;
  profile.attribute_names = {"tenant", "endpoint"};
  profile.resource = {{"service.name", "shop"}};
  profile.periods[0] = {10'000'000, 10'100'000};
  profile.start_time_ns = 1'700'000'000'000'000'000;
  profile.duration_ns = 5'000'000'000;
  profile.AddToCounter("sampler.torn", 3);
  profile::Context context{
      .trace_id_high = 1, .trace_id_low = 2, .span_id = 0xF000'0000'0000'0003, .root_span_id = 4};
  context.tags[0] = profile.Intern("acme");
  context.tags[1] = profile.Intern("a tag by the name of a label");
  profile.SetEndpoint(4, "GET /cart");
  const auto mapping = profile.AddMapping({.start = 0x5000,
                                           .end = 0x9000,
                                           .file_offset = 0x1000,
                                           .path = profile.Intern("/bin/shop"),
                                           .build_id = profile.Intern("abcdef01")});
  const auto outer = profile.AddFunction({.name = profile.Intern("main")});
  const auto inner = profile.AddFunction({.name = profile.Intern("f()"),
                                          .system_name = profile.Intern("_Z1fv"),
                                          .file = profile.Intern("shop.cc"),
                                          .start_line = 3});
  const profile::FrameId frames[] = {
      profile.AddFrame({.mapping = mapping, .address = 0x1234, .function = outer, .line = 10}),
      profile.AddFrame({.inlined = true,
                        .mapping = mapping,
                        .address = 0x1234,
                        .function = inner,
                        .line = 5,
                        .column = 7}),
  };
  profile.AddSample({.time_ns = 1'700'000'001'000'000'007,
                     .thread = profile.AddThread(77, "worker"),
                     .context = profile.AddContext(context),
                     .stack = profile.AddStack(frames),
                     .state = profile::ThreadState::kRunning,
                     .count = 2,
                     .value = 20'200'000});
  return profile;
}

std::string Plain(const Profile& profile, const WriteOptions& options = {}) {
  return *Decompress(*WritePprof(profile, options), 1 << 30);
}

TEST(Pprof, OneSampleComesBackWhole) {
  const Profile profile = OneSample();
  const auto back = ReadPprof(*WritePprof(profile, {}), {});
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(DescribeHead(*back), DescribeHead(profile));
  EXPECT_EQ(DescribeSamples(*back), DescribeSamples(profile));
}

TEST(Pprof, HoldsLabelsByOurNamesAndOnRequestByOthers) {
  const std::string ours = Plain(OneSample());
  EXPECT_THAT(ours, HasSubstr("0000000000000001"
                              "0000000000000002"));
  EXPECT_THAT(ours, HasSubstr("f000000000000003"));
  EXPECT_THAT(ours, HasSubstr("local_root_span_id"));
  EXPECT_THAT(ours, HasSubstr("attribute.endpoint"));
  EXPECT_THAT(ours, Not(HasSubstr("local root span id")));

  WriteOptions datadog;
  datadog.labels = {LabelScheme::kDatadog};
  const std::string with_datadog = Plain(OneSample(), datadog);
  for (const char* name : {"local root span id", "span id", "trace endpoint", "thread name",
                           "thread id", "end_timestamp_ns"}) {
    EXPECT_THAT(with_datadog, HasSubstr(name));
  }

  WriteOptions pyroscope;
  pyroscope.labels = {LabelScheme::kPyroscope};
  const std::string with_pyroscope = Plain(OneSample(), pyroscope);
  EXPECT_THAT(with_pyroscope, HasSubstr("span_name"));
  EXPECT_THAT(with_pyroscope, HasSubstr("f000000000000003"));
  EXPECT_THAT(with_pyroscope, Not(HasSubstr("0000000000000002"))) << "no text a request";
  EXPECT_THAT(with_pyroscope, Not(HasSubstr("profile_id")));
}

TEST(Pprof, ComesBackWholeWithOtherPeoplesLabelsToo) {
  WriteOptions options;
  options.labels = {LabelScheme::kDatadog, LabelScheme::kPyroscope};
  const Profile profile = OneSample();
  const auto back = ReadPprof(*WritePprof(profile, options), {});
  ASSERT_TRUE(back);
  EXPECT_EQ(DescribeHead(*back), DescribeHead(profile));
  EXPECT_EQ(DescribeSamples(*back), DescribeSamples(profile));
}

TEST(Pprof, EqualSamplesAreWrittenAsOne) {
  Profile profile;
  for (int i = 0; i < 5; ++i) profile.AddSample({.time_ns = 70'000'000'000, .value = 3});
  profile.AddSample({.time_ns = 70'000'000'000, .kind = SampleKind::kWall, .value = 9});
  profile.AddSample({.time_ns = 70'000'000'001, .value = 4});
  const auto back = ReadPprof(*WritePprof(profile, {}), {});
  ASSERT_TRUE(back);
  EXPECT_EQ(back->samples().size(), 3u);
  EXPECT_EQ(DescribeSamples(*back), DescribeSamples(profile));

  WriteOptions by_minute;
  by_minute.sample_times = SampleTimes::kMinute;
  const auto coarse = ReadPprof(*WritePprof(profile, by_minute), {});
  ASSERT_TRUE(coarse);
  ASSERT_EQ(coarse->samples().size(), 2u);
  EXPECT_EQ(coarse->samples()[0],
            (profile::Sample{
                .time_ns = profile::kFoldNanoseconds, .folded = true, .count = 6, .value = 19}));
}

TEST(Pprof, ManySamplesAreWrittenByMinute) {
  Profile profile;
  for (size_t i = 0; i <= kMaxExactTimes; ++i) profile.AddSample({.time_ns = 1 + i, .value = 1});
  const auto back = ReadPprof(*WritePprof(profile, {}), {});
  ASSERT_TRUE(back);
  ASSERT_EQ(back->samples().size(), 1u);
  EXPECT_EQ(back->samples()[0].count, kMaxExactTimes + 1);
}

TEST(Pprof, TextThatIsNotUtf8IsMadeSo) {
  Profile profile;
  const auto function = profile.AddFunction({.name = profile.Intern("a\xFF\xC3\xA4\xC3")});
  profile.AddSample(
      {.stack = profile.AddStack(profile::kNone, profile.AddFrame({.function = function})),
       .value = 1});
  const auto back = ReadPprof(*WritePprof(profile, {}), {});
  ASSERT_TRUE(back);
  EXPECT_EQ(FrameName(*back, 1), "a\xEF\xBF\xBD\xC3\xA4\xEF\xBF\xBD");
}

// Other people's file: what Go's runtime and Datadog write, by hand.
std::string ForeignFile() {
  using namespace pprof;
  std::string bytes;
  protozero::pbf_writer out(bytes);
  const char* strings[] = {"",
                           "samples",
                           "count",
                           "cpu",
                           "milliseconds",
                           "worker",
                           "pool",
                           "span id",
                           "main",
                           "local root span id",
                           "1234567890123456",
                           "trace endpoint",
                           "GET /"};
  for (const auto& [type, unit] : {std::pair(1, 2), std::pair(3, 4)}) {
    protozero::pbf_writer value_type(out, ProfileField::kSampleType);
    value_type.add_int64(ValueTypeField::kType, type);
    value_type.add_int64(ValueTypeField::kUnit, unit);
  }
  {
    protozero::pbf_writer sample(out, ProfileField::kSample);
    // Not packed, which is as good.
    sample.add_uint64(SampleField::kLocationId, 1);
    sample.add_int64(SampleField::kValue, 3);
    sample.add_int64(SampleField::kValue, 30);
    const auto add_label = [&](int key, int text, int64_t number) {
      protozero::pbf_writer label(sample, SampleField::kLabel);
      label.add_int64(LabelField::kKey, key);
      if (text != 0) label.add_int64(LabelField::kStr, text);
      if (number != 0) label.add_int64(LabelField::kNum, number);
    };
    add_label(6, 5, 0);
    add_label(7, 0, 99);
    add_label(9, 10, 0);
    add_label(11, 12, 0);
  }
  {
    protozero::pbf_writer location(out, ProfileField::kLocation);
    location.add_uint64(LocationField::kId, 1);
    protozero::pbf_writer line(location, LocationField::kLine);
    line.add_uint64(LineField::kFunctionId, 5);
  }
  {
    protozero::pbf_writer function(out, ProfileField::kFunction);
    function.add_uint64(FunctionField::kId, 5);
    function.add_int64(FunctionField::kName, 8);
  }
  for (const char* text : strings) out.add_string(ProfileField::kStringTable, text);
  return bytes;
}

TEST(Pprof, ReadsOtherPeoplesFiles) {
  const auto profile = ReadPprof(ForeignFile(), {});
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->samples().size(), 1u);
  const profile::Sample& sample = profile->samples()[0];
  EXPECT_EQ(sample.count, 3u);
  EXPECT_EQ(sample.value, 30'000'000u);
  EXPECT_EQ(profile->attribute_names, std::vector<std::string>{"pool"});
  const profile::Context& context = profile->contexts()[sample.context];
  EXPECT_EQ(profile->Text(context.tags[0]), "worker");
  EXPECT_EQ(context.span_id, 99u);
  EXPECT_EQ(context.root_span_id, 1234567890123456u) << "16 digits, but not hex";
  EXPECT_EQ(profile->Text(profile->EndpointOf(1234567890123456)), "GET /");
  EXPECT_EQ(FrameName(*profile, profile->FramesOf(sample.stack).at(0)), "main");
}

// The highest field number in a message and in those inside it, which are `messages`.
uint32_t HighestField(protozero::pbf_reader message, const std::vector<uint32_t>& messages) {
  using namespace pprof;
  uint32_t highest = 0;
  while (message.next()) {
    highest = std::max(highest, message.tag());
    if (std::find(messages.begin(), messages.end(), message.tag()) == messages.end()) {
      message.skip();
      continue;
    }
    std::vector<uint32_t> inner;
    if (message.tag() == ProfileField::kSample) inner = {SampleField::kLabel};
    if (message.tag() == ProfileField::kLocation) inner = {LocationField::kLine};
    highest = std::max(highest, HighestField(message.get_message(), inner));
  }
  return highest;
}

// Then a tag is one byte, and more is not read by everybody.
TEST(Pprof, NoFieldNumberIsAbove15) {
  using namespace pprof;
  Profile profile = OneSample();
  const profile::FrameId frame = profile.AddFrame({.kind = profile::FrameKind::kJavaScript});
  profile.AddSample({.stack = profile.AddStack({&frame, 1}), .value = 1});
  const std::string plain = Plain(profile);
  EXPECT_EQ(HighestField(protozero::pbf_reader(plain),
                         {ProfileField::kSampleType, ProfileField::kSample, ProfileField::kMapping,
                          ProfileField::kLocation, ProfileField::kFunction}),
            15u);
}

TEST(Pprof, ReadsTheBoundsAndKindsOfEarlierFiles) {
  using namespace pprof;
  std::string bytes;
  protozero::pbf_writer out(bytes);
  {
    protozero::pbf_writer mapping(out, ProfileField::kMapping);
    mapping.add_uint64(MappingField::kId, 1);
    mapping.add_uint64(MappingField::kMemoryLimit, ~uint64_t{0});
    mapping.add_uint64(100, 0x5000);
    mapping.add_uint64(101, 0x9000);
    mapping.add_uint64(102, 0x1000);
  }
  {
    protozero::pbf_writer location(out, ProfileField::kLocation);
    location.add_uint64(LocationField::kId, 1);
    location.add_uint64(LocationField::kMappingId, 1);
    location.add_uint32(100, static_cast<uint32_t>(profile::FrameKind::kRuby));
  }
  {
    protozero::pbf_writer value_type(out, ProfileField::kSampleType);
    value_type.add_int64(ValueTypeField::kType, 1);
    value_type.add_int64(ValueTypeField::kUnit, 2);
  }
  {
    protozero::pbf_writer sample(out, ProfileField::kSample);
    sample.add_uint64(SampleField::kLocationId, 1);
    sample.add_int64(SampleField::kValue, 1);
  }
  for (const char* text : {"", "cpu", "nanoseconds"}) {
    out.add_string(ProfileField::kStringTable, text);
  }
  const auto profile = ReadPprof(bytes, {});
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->samples().size(), 1u);
  const profile::Frame& frame =
      profile->frames()[profile->FramesOf(profile->samples()[0].stack).at(0)];
  EXPECT_EQ(frame.kind, profile::FrameKind::kRuby);
  const profile::Mapping& mapping = profile->mappings()[frame.mapping];
  EXPECT_EQ(mapping.start, 0x5000u);
  EXPECT_EQ(mapping.end, 0x9000u);
  EXPECT_EQ(mapping.file_offset, 0x1000u);
}

TEST(Pprof, EveryTruncationIsReadOrRefused) {
  const std::string plain = Plain(OneSample());
  size_t refused = 0;
  for (size_t size = 0; size < plain.size(); ++size) {
    const auto result = ReadPprof(std::string_view(plain).substr(0, size), {});
    if (result) continue;
    ++refused;
    EXPECT_FALSE(result.error().message.empty());
  }
  EXPECT_GT(refused, plain.size() * 8 / 10);
  const std::string compressed = *WritePprof(OneSample(), {});
  for (size_t size = 0; size < compressed.size(); ++size) {
    EXPECT_FALSE(ReadPprof(std::string_view(compressed).substr(0, size), {})) << size;
  }
}

TEST(Pprof, ErrorsTellThePlace) {
  const auto garbage = ReadPprof("\xFF\xFF\xFF\xFF garbage", {});
  ASSERT_FALSE(garbage);
  EXPECT_EQ(garbage.error().code, EINVAL);
  EXPECT_THAT(garbage.error().message, HasSubstr("at byte 0"));
  std::string plain = Plain(OneSample());
  const size_t size = plain.size();
  plain += "\x12\x7F";
  EXPECT_THAT(ReadPprof(plain, {}).error().message, HasSubstr("at byte " + std::to_string(size)));
}

TEST(Pprof, ABombIsRefused) {
  ReadLimits limits;
  limits.max_uncompressed = 1 << 20;
  const auto bomb = ReadPprof(*Compress(std::string(50 << 20, '\0')), limits);
  ASSERT_FALSE(bomb);
  EXPECT_EQ(bomb.error().code, EFBIG);

  // Small on disk, large in memory: millions of empty strings, two bytes each.
  std::string strings = Plain(OneSample());
  for (int i = 0; i < 1'000'000; ++i) strings += std::string_view("\x32\x00", 2);
  limits.max_memory = 1 << 20;
  const auto wide = ReadPprof(strings, limits);
  ASSERT_FALSE(wide);
  EXPECT_EQ(wide.error().code, EFBIG);
}

TEST(Pprof, MoreSamplesThanFitAreRefusedNotFolded) {
  Profile profile;
  for (uint64_t i = 1; i < 50'000; ++i) profile.AddSample({.time_ns = i, .value = 1});
  const std::string bytes = *WritePprof(profile, {});
  EXPECT_TRUE(ReadPprof(bytes, {}));
  const auto result = ReadPprof(bytes, {.max_memory = 1 << 20});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, EFBIG);
}

TEST(Pprof, ALocationWithManyLinesIsRefused) {
  using namespace pprof;
  std::string bytes = Plain(OneSample());
  protozero::pbf_writer out(bytes);
  {
    protozero::pbf_writer location(out, ProfileField::kLocation);
    for (int i = 0; i < 2000; ++i) location.add_message(LocationField::kLine, std::string());
  }
  EXPECT_THAT(ReadPprof(bytes, {}).error().message, HasSubstr("1024 lines"));
}

TEST(Pprof, ReferencesToNothingAreCounted) {
  using namespace pprof;
  std::string bytes = Plain(OneSample());
  protozero::pbf_writer out(bytes);
  {
    protozero::pbf_writer sample(out, ProfileField::kSample);
    sample.add_uint64(SampleField::kLocationId, 12345);
    const int64_t values[] = {1, -5};
    sample.add_packed_int64(SampleField::kValue, std::begin(values), std::end(values));
    protozero::pbf_writer label(sample, SampleField::kLabel);
    label.add_int64(LabelField::kKey, 1 << 30);
    label.add_int64(LabelField::kStr, 1 << 30);
  }
  {
    protozero::pbf_writer function(out, ProfileField::kFunction);
    function.add_uint64(FunctionField::kId, 99);
    function.add_int64(FunctionField::kName, 1 << 30);
    function.add_int64(FunctionField::kFilename, -1);
  }
  {
    protozero::pbf_writer mapping(out, ProfileField::kMapping);
    mapping.add_int64(MappingField::kFilename, 1 << 30);
  }
  out.add_int64(ProfileField::kComment, 1 << 30);
  const auto profile = ReadPprof(bytes, {});
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->samples().size(), 2u);
  EXPECT_EQ(profile->counters().at("pprof.bad_reference"), 5u);
  EXPECT_EQ(profile->counters().at("pprof.negative_value"), 1u);
}

}  // namespace
}  // namespace spanprof::format
