#include "format/jfr.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "format/format.h"
#include "format/jfr_chunk.h"
#include "format/jfr_fixture.h"
#include "format/jfr_schema.h"
#include "profile/profile.h"
#include "profile/profile_query.h"

namespace spanprof::format {
namespace {

WriteOptions OptionsFor(JfrContext context) {
  WriteOptions options;
  options.jfr_context = context;
  return options;
}

std::string Written(const profile::Profile& profile, JfrContext context = JfrContext::kPool) {
  Result<std::string> bytes = WriteJfr(profile, OptionsFor(context));
  EXPECT_TRUE(bytes.has_value());
  return bytes.value_or("");
}

class JfrTest : public testing::TestWithParam<JfrContext> {};

INSTANTIATE_TEST_SUITE_P(Forms, JfrTest, testing::Values(JfrContext::kPool, JfrContext::kFlat),
                         [](const auto& form) {
                           return form.param == JfrContext::kPool ? "Pool" : "Flat";
                         });

TEST_P(JfrTest, KeepsAllThatAProfileSays) {
  const profile::Profile profile = MakeSmallProfile();
  const Result<profile::Profile> read = ReadJfr(Written(profile, GetParam()), {});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(DescribeSamples(*read), DescribeSamples(profile));
  EXPECT_EQ(DescribeEndpoints(*read), DescribeEndpoints(profile));
  EXPECT_EQ(read->counters(), profile.counters());
  EXPECT_EQ(read->resource, profile.resource);
  EXPECT_EQ(read->attribute_names, profile.attribute_names);
  EXPECT_EQ(read->periods, profile.periods);
  EXPECT_EQ(read->start_time_ns, profile.start_time_ns);
  EXPECT_EQ(read->duration_ns, profile.duration_ns);
}

TEST_P(JfrTest, KeepsALargeProfile) {
  const profile::Profile profile = MakeLargeProfile({.samples = 2'000});
  const Result<profile::Profile> read = ReadJfr(Written(profile, GetParam()), {});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(DescribeSamples(*read), DescribeSamples(profile));
}

TEST_P(JfrTest, KeepsAttributesThatAreCalledLikeFields) {
  profile::Profile profile;
  profile.attribute_names = {"spanId", "endpoint", "state", "endpoint", "stackTrace"};
  profile::Context context{.span_id = 5, .root_span_id = 6};
  for (unsigned i = 0; i < 6; ++i) context.tags[i] = profile.Intern("tag" + std::to_string(i));
  profile.AddSample({.time_ns = 1'000, .context = profile.AddContext(context)});
  const Result<profile::Profile> read = ReadJfr(Written(profile, GetParam()), {});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(DescribeSamples(*read), DescribeSamples(profile));
  profile.attribute_names.emplace_back("tag_5");  // had a value and no name
  EXPECT_EQ(read->attribute_names, profile.attribute_names);
}

TEST_P(JfrTest, ReadsChunksAsOneProfile) {
  const profile::Profile first = MakeSmallProfile();
  const profile::Profile second = MakeLargeProfile({.samples = 100});
  const Result<profile::Profile> read =
      ReadJfr(Written(first, GetParam()) + Written(second, GetParam()), {});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  profile::Profile expected;
  profile::Merge(expected, first);
  profile::Merge(expected, second);
  EXPECT_EQ(DescribeSamples(*read), DescribeSamples(expected));
  EXPECT_EQ(read->counters(), expected.counters());
}

TEST(JfrWriterTest, AnEmptyProfileIsAChunk) {
  const std::string bytes = Written(profile::Profile());
  EXPECT_EQ(CompleteJfrPrefix(bytes), bytes.size());
  const Result<profile::Profile> read = ReadJfr(bytes, {});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_TRUE(read->samples().empty());
}

TEST(JfrWriterTest, TheSameProfileGivesTheSameBytes) {
  EXPECT_EQ(Written(MakeSmallProfile()), Written(MakeSmallProfile()));
}

// Otherwise the JDK would take the constants of one for those of the next.
TEST(JfrWriterTest, AChunkWithoutConstantsStandsBetweenTwo) {
  const std::string bytes = Written(MakeSmallProfile());
  const Result<jfr::ChunkHeader> chunk = jfr::ReadChunkHeader(bytes, 0);
  ASSERT_TRUE(chunk.has_value());
  const Result<jfr::ChunkHeader> separator = jfr::ReadChunkHeader(bytes, chunk->size);
  ASSERT_TRUE(separator.has_value());
  EXPECT_EQ(chunk->size + separator->size, bytes.size());
  EXPECT_LT(separator->size, 250u);
}

TEST(JfrWriterTest, WithoutAStartTheFirstSampleIsTheStart) {
  profile::Profile profile;
  profile.AddSample({.time_ns = 2'000'000, .value = 1});
  profile.AddSample({.time_ns = 1'000'000, .value = 1});
  const Result<profile::Profile> read = ReadJfr(Written(profile), {});
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->start_time_ns, 1'000'000u);
  EXPECT_EQ(DescribeSamples(*read), DescribeSamples(profile));
}

struct Sizes {
  uint64_t samples = 0;
  uint64_t sample_bytes = 0;
  uint64_t pool_bytes = 0;
  uint64_t all_bytes = 0;
  double PerSample(uint64_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(samples);
  }
};

Sizes Measure(const profile::Profile& profile, JfrContext context) {
  const std::string bytes = Written(profile, context);
  Sizes sizes{.all_bytes = bytes.size()};
  const Result<jfr::ChunkHeader> header = jfr::ReadChunkHeader(bytes, 0);
  EXPECT_TRUE(header.has_value());
  const auto count = [&](const jfr::EventSpan& event) -> Result<void> {
    if (event.type == jfr::kCheckpointEventId) sizes.pool_bytes += event.end - event.begin;
    if (event.type == jfr::kExecutionSampleId || event.type == jfr::kWallSampleId) {
      ++sizes.samples;
      sizes.sample_bytes += event.end - event.begin;
    }
    return {};
  };
  EXPECT_TRUE(jfr::ForEachEvent(bytes, 0, *header, count).has_value());
  return sizes;
}

TEST(JfrSizeTest, AnEventTakesAtMostTwentyBytes) {
  struct Case {
    const char* name;
    LargeProfileShape shape;
  };
  const Case cases[] = {
      {"10k samples, 16 threads, 500 stacks, a span for every 4", {}},
      {"40k samples, 200 threads, 20k stacks, a span for every sample",
       {.samples = 40'000, .threads = 200, .stacks = 20'000, .samples_per_span = 1}},
      {"10k samples in 2030", {.start_time_ns = 1'900'000'000'000'000'000}},
      {"1k samples, 2 threads, 50 stacks, a span for every 100",
       {.samples = 1'000, .threads = 2, .stacks = 50, .samples_per_span = 100}}};
  for (const Case& c : cases) {
    const profile::Profile profile = MakeLargeProfile(c.shape);
    for (const JfrContext context : {JfrContext::kPool, JfrContext::kFlat}) {
      const Sizes sizes = Measure(profile, context);
      std::printf("%s, %s: %.1f bytes an event, pools %.1f, whole file %.1f\n", c.name,
                  context == JfrContext::kPool ? "pool" : "flat",
                  sizes.PerSample(sizes.sample_bytes), sizes.PerSample(sizes.pool_bytes),
                  sizes.PerSample(sizes.all_bytes));
      if (context == JfrContext::kPool) {
        EXPECT_LE(sizes.PerSample(sizes.sample_bytes), 20.0);
      }
    }
  }
}

TEST(JfrPrefixTest, IsTheLeadingRunOfCompleteChunks) {
  const std::string chunk = Written(MakeSmallProfile());
  EXPECT_EQ(CompleteJfrPrefix(""), 0u);
  EXPECT_EQ(CompleteJfrPrefix("FLR"), 0u);
  EXPECT_EQ(CompleteJfrPrefix(chunk + chunk), 2 * chunk.size());
  const size_t separator = jfr::ReadChunkHeader(chunk, 0)->size;
  for (size_t cut = 0; cut < chunk.size(); ++cut) {
    EXPECT_EQ(CompleteJfrPrefix(chunk + chunk.substr(0, cut)),
              chunk.size() + (cut < separator ? 0 : separator));
  }
  EXPECT_EQ(CompleteJfrPrefix(chunk + "garbage"), chunk.size());
}

TEST(JfrLenientTest, LeavesOutACutEndAndSaysSo) {
  const std::string chunk = Written(MakeSmallProfile());
  std::string warning = "old";
  Result<profile::Profile> read = ReadJfrLenient(chunk, {}, &warning);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(warning, "");
  read = ReadJfrLenient(chunk + chunk.substr(0, 100), {}, &warning);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->samples().size(), 6u);
  EXPECT_NE(warning.find("100 bytes"), std::string::npos) << warning;
  EXPECT_FALSE(ReadJfr(chunk + chunk.substr(0, 100), {}).has_value());
  EXPECT_FALSE(ReadJfrLenient(chunk.substr(0, 100), {}, &warning).has_value());
}

}  // namespace
}  // namespace spanprof::format
