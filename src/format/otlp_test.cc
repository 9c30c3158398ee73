#include <cerrno>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "format/format.h"
#include "format/otlp_fields.h"
#include "profile/names.h"
#include "profile/profile_query.h"
#include "profile/profile_testing.h"

namespace spanprof::format {
namespace {

using profile::Profile;
using profile::SampleKind;
using ::testing::HasSubstr;

// The messages of one field, in order.
std::vector<std::string> Messages(std::string_view bytes, uint32_t field) {
  std::vector<std::string> messages;
  protozero::pbf_reader reader(bytes.data(), bytes.size());
  while (reader.next()) {
    if (reader.tag() == field && reader.wire_type() == protozero::pbf_wire_type::length_delimited) {
      messages.push_back(reader.get_string());
    } else {
      reader.skip();
    }
  }
  return messages;
}

std::vector<std::string> Profiles(const std::string& request) {
  const auto resources = Messages(request, otlp::RequestField::kResourceProfiles);
  const auto scopes = Messages(resources.at(0), otlp::ResourceProfilesField::kScopeProfiles);
  return Messages(scopes.at(0), otlp::ScopeProfilesField::kProfiles);
}

TEST(Otlp, EntryZeroOfEveryTableIsZero) {
  const std::string request = *WriteOtlp(profile::RandomProfile(7), {});
  const auto dictionaries = Messages(request, otlp::RequestField::kDictionary);
  ASSERT_EQ(dictionaries.size(), 1u);
  for (const uint32_t table :
       {otlp::DictionaryField::kMappingTable, otlp::DictionaryField::kLocationTable,
        otlp::DictionaryField::kFunctionTable, otlp::DictionaryField::kLinkTable,
        otlp::DictionaryField::kStringTable, otlp::DictionaryField::kAttributeTable,
        otlp::DictionaryField::kStackTable}) {
    const auto entries = Messages(dictionaries[0], table);
    ASSERT_GT(entries.size(), 1u) << table;
    EXPECT_EQ(entries[0], "") << table;
  }
}

TEST(Otlp, HasAProfileForEachKind) {
  Profile profile;
  profile.AddSample({.time_ns = 5, .value = 1});
  profile.AddSample({.time_ns = 5, .kind = SampleKind::kAllocation, .value = 1});
  const std::string request = *WriteOtlp(profile, {});
  EXPECT_EQ(Profiles(request).size(), 2u);
  // Sent again, it is the same: the ids of the profiles come from what they hold.
  EXPECT_EQ(*WriteOtlp(profile, {}), request);
  const auto id = [](const std::string& bytes) {
    return Messages(bytes, otlp::ProfileField::kProfileId).at(0);
  };
  EXPECT_EQ(id(Profiles(request)[0]).size(), 16u);
  EXPECT_NE(id(Profiles(request)[0]), id(Profiles(request)[1]));
}

TEST(Otlp, SamplesThatDifferOnlyInTimeAreOne) {
  Profile profile;
  for (uint64_t i = 1; i <= 10; ++i) profile.AddSample({.time_ns = i, .value = i});
  profile.AddSample({.time_ns = 20, .count = 3, .value = 100});
  const std::string request = *WriteOtlp(profile, {});
  EXPECT_EQ(Messages(Profiles(request).at(0), otlp::ProfileField::kSamples).size(), 2u);
  const auto back = ReadOtlp(request, {});
  ASSERT_TRUE(back);
  EXPECT_EQ(DescribeSamples(*back), DescribeSamples(profile));
}

TEST(Otlp, AnEmptyProfileKeepsItsHead) {
  Profile profile;
  profile.resource = {{"service.name", "shop"}};
  profile.start_time_ns = 5;
  profile.duration_ns = 6;
  profile.attribute_names = {"a", "b"};
  profile.AddToCounter("sampler.torn", 3);
  const auto back = ReadOtlp(*WriteOtlp(profile, {}), {});
  ASSERT_TRUE(back);
  EXPECT_EQ(DescribeHead(*back), DescribeHead(profile));
  EXPECT_TRUE(back->samples().empty());
}

TEST(Otlp, TextThatIsNotUtf8IsMadeSo) {
  Profile profile;
  profile.resource = {{"service.name", "a\xFF"}};
  profile.AddSample({.thread = profile.AddThread(1, "b\xFF"), .value = 1});
  const auto back = ReadOtlp(*WriteOtlp(profile, {}), {});
  ASSERT_TRUE(back);
  EXPECT_EQ(back->resource[0].value, "a\xEF\xBF\xBD");
  EXPECT_EQ(back->Text(back->threads()[1].name), "b\xEF\xBF\xBD");
}

// As the OpenTelemetry eBPF profiler writes: counts, with the period to make time of them.
TEST(Otlp, ReadsOtherPeoplesFiles) {
  using namespace otlp;
  std::string bytes;
  protozero::pbf_writer request(bytes);
  {
    protozero::pbf_writer resource_profiles(request, RequestField::kResourceProfiles);
    protozero::pbf_writer scope(resource_profiles, ResourceProfilesField::kScopeProfiles);
    protozero::pbf_writer profile(scope, ScopeProfilesField::kProfiles);
    {
      protozero::pbf_writer type(profile, ProfileField::kSampleType);
      type.add_int32(ValueTypeField::kTypeStrindex, 1);
      type.add_int32(ValueTypeField::kUnitStrindex, 2);
    }
    {
      protozero::pbf_writer type(profile, ProfileField::kPeriodType);
      type.add_int32(ValueTypeField::kTypeStrindex, 3);
      type.add_int32(ValueTypeField::kUnitStrindex, 4);
    }
    profile.add_int64(ProfileField::kPeriod, 1000);
    protozero::pbf_writer sample(profile, ProfileField::kSamples);
    const uint64_t times[] = {7, 8};
    sample.add_packed_fixed64(SampleField::kTimestampsUnixNano, std::begin(times), std::end(times));
    const int32_t attributes[] = {1, 99, -1};
    sample.add_packed_int32(SampleField::kAttributeIndices, std::begin(attributes),
                            std::end(attributes));
  }
  {
    protozero::pbf_writer dictionary(request, RequestField::kDictionary);
    for (const char* text : {"", "samples", "count", "cpu", "nanoseconds", "process.pid"}) {
      dictionary.add_string(DictionaryField::kStringTable, text);
    }
    dictionary.add_message(DictionaryField::kAttributeTable, std::string());
    protozero::pbf_writer attribute(dictionary, DictionaryField::kAttributeTable);
    attribute.add_int32(KeyValueAndUnitField::kKeyStrindex, 5);
    protozero::pbf_writer value(attribute, KeyValueAndUnitField::kValue);
    value.add_int64(AnyValueField::kInt, 4242);
  }
  const auto profile = ReadOtlp(bytes, {});
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->samples().size(), 2u);
  EXPECT_EQ(profile->samples()[1].time_ns, 8u);
  EXPECT_EQ(profile->samples()[1].count, 1u);
  EXPECT_EQ(profile->samples()[1].value, 1000u);
  EXPECT_EQ(profile->attribute_names, std::vector<std::string>{"process.pid"});
  EXPECT_EQ(profile->Text(profile->contexts()[profile->samples()[1].context].tags[0]), "4242");
  EXPECT_EQ(profile->counters().at("otlp.bad_reference"), 2u);
}

TEST(Otlp, EveryTruncationIsReadOrRefused) {
  const std::string whole = *WriteOtlp(profile::RandomProfile(3, {.sample_count = 4}), {});
  size_t refused = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto result = ReadOtlp(std::string_view(whole).substr(0, size), {});
    if (!result) {
      ++refused;
      EXPECT_FALSE(result.error().message.empty());
    }
  }
  EXPECT_GE(refused, whole.size() - 2) << "all but the end of the first of its two fields";
}

TEST(Otlp, ErrorsTellThePlace) {
  std::string whole = *WriteOtlp(profile::RandomProfile(3), {});
  const size_t size = whole.size();
  whole += "\x12\x7F";
  const auto result = ReadOtlp(whole, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, EINVAL);
  EXPECT_THAT(result.error().message, HasSubstr("at byte " + std::to_string(size)));
  EXPECT_FALSE(ReadOtlp("", {}));
  EXPECT_FALSE(ReadOtlp("garbage, garbage", {}));
}

TEST(Otlp, WhatDoesNotFitIsRefused) {
  Profile profile;
  for (uint64_t i = 1; i < 50'000; ++i) profile.AddSample({.time_ns = i, .value = 1});
  const auto samples = ReadOtlp(*WriteOtlp(profile, {}), {.max_memory = 1 << 20});
  ASSERT_FALSE(samples);
  EXPECT_EQ(samples.error().code, EFBIG);

  std::string dictionary;
  for (int i = 0; i < 1'000'000; ++i) dictionary += std::string_view("\x2A\x00", 2);
  std::string request;
  protozero::pbf_writer(request).add_message(otlp::RequestField::kDictionary, dictionary);
  const auto strings = ReadOtlp(request, {.max_memory = 1 << 20});
  ASSERT_FALSE(strings);
  EXPECT_EQ(strings.error().code, EFBIG);
}

}  // namespace
}  // namespace spanprof::format
