#include <algorithm>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "format/firefox_tables.h"
#include "format/format.h"
#include "format/gzip.h"
#include "format/perfetto_timeline.h"
#include "profile/names.h"
#include "profile/profile_testing.h"

namespace spanprof::format {
namespace {

using nlohmann::json;
using profile::Profile;
using profile::SampleKind;

json Written(const Profile& profile) {
  const auto bytes = WriteFirefox(profile, {});
  if (!bytes || !IsGzip(*bytes)) return {};
  const auto text = Decompress(*bytes, size_t{1} << 30);
  return text ? json::parse(*text) : json();
}

// Every column is as long as the table says.
void ExpectRectangular(const json& table) {
  for (const auto& [name, column] : table.items()) {
    if (!column.is_array()) continue;
    EXPECT_EQ(column.size(), table["length"].get<size_t>()) << name;
  }
}

void ExpectIndices(const json& column, const json& table_length, bool may_be_none) {
  for (const json& index : column) {
    const bool is_none = index.is_null() || (index.is_number_integer() && index == -1);
    if (is_none) {
      EXPECT_TRUE(may_be_none);
    } else {
      ASSERT_GE(index.get<int64_t>(), 0);
      ASSERT_LT(index.get<uint64_t>(), table_length.get<uint64_t>());
    }
  }
}

void ExpectConsistent(const json& root) {
  const json& shared = root["shared"];
  const json strings = shared["stringArray"].size();
  for (const char* name :
       {"stackTable", "frameTable", "funcTable", "resourceTable", "sources", "nativeSymbols"}) {
    ASSERT_TRUE(shared.contains(name)) << name;
    ExpectRectangular(shared[name]);
  }
  ExpectIndices(shared["stackTable"]["frame"], shared["frameTable"]["length"], false);
  ExpectIndices(shared["frameTable"]["func"], shared["funcTable"]["length"], false);
  ExpectIndices(shared["frameTable"]["category"], root["meta"]["categories"].size(), false);
  ExpectIndices(shared["funcTable"]["name"], strings, false);
  ExpectIndices(shared["funcTable"]["resource"], shared["resourceTable"]["length"], true);
  ExpectIndices(shared["funcTable"]["source"], shared["sources"]["length"], true);
  ExpectIndices(shared["resourceTable"]["lib"], root["libs"].size(), false);
  ExpectIndices(shared["resourceTable"]["name"], strings, false);
  ExpectIndices(shared["sources"]["filename"], strings, false);
  const json& prefixes = shared["stackTable"]["prefix"];
  for (size_t i = 0; i < prefixes.size(); ++i) {
    if (prefixes[i].is_null()) continue;
    ASSERT_LT(prefixes[i].get<size_t>(), i);  // the viewer relies on it
  }
  size_t main_threads = 0;
  for (const json& thread : root["threads"]) {
    main_threads += thread["isMainThread"] ? 1 : 0;
    ExpectRectangular(thread["samples"]);
    ExpectRectangular(thread["markers"]);
    ExpectIndices(thread["samples"]["stack"], shared["stackTable"]["length"], true);
    ExpectIndices(thread["markers"]["name"], strings, false);
    for (const json& delta : thread["samples"]["timeDeltas"]) ASSERT_GE(delta.get<double>(), 0);
    for (size_t i = 0; i < thread["markers"]["length"]; ++i) {
      ASSERT_LE(thread["markers"]["startTime"][i], thread["markers"]["endTime"][i]);
      ExpectIndices(json::array({thread["markers"]["data"][i]["span_id"]}), strings, false);
    }
  }
  EXPECT_EQ(main_threads, root["threads"].empty() ? 0u : 1u);
  ExpectIndices(root["meta"]["initialVisibleThreads"], root["threads"].size(), false);
}

TEST(WriteFirefox, TablesAreConsistentAndWeightsAddUp) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Profile profile = profile::RandomProfile(seed, {.sample_count = 300});
    const json root = Written(profile);
    ASSERT_TRUE(root.is_object());
    ExpectConsistent(root);
    size_t samples = 0;
    double bytes = 0;
    for (const json& thread : root["threads"]) {
      samples += thread["samples"]["length"].get<size_t>();
      if (thread["samples"]["weightType"] != "bytes") continue;
      for (const json& weight : thread["samples"]["weight"]) bytes += weight.get<double>();
    }
    EXPECT_EQ(samples, profile.samples().size());
    double expected_bytes = 0;
    for (const auto& sample : profile.samples()) {
      if (sample.kind == SampleKind::kAllocation) {
        expected_bytes += static_cast<double>(sample.value);
      }
    }
    EXPECT_NEAR(bytes, expected_bytes, 1e-9 * expected_bytes);
  }
}

constexpr uint64_t kStart = 1'700'000'000'000'000'000;

// Two spans on one thread: A A B, a gap without a span, A.
Profile TwoSpans() {
  Profile profile;
  profile.start_time_ns = kStart;
  profile.duration_ns = 100'000'000;
  profile.resource = {{"process.pid", "7"}, {"service.name", "shop"}};
  profile.attribute_names = {"tenant"};
  profile.AddToCounter("sampler.torn", 3);
  profile::Context context{
      .trace_id_high = 1, .trace_id_low = 2, .span_id = 0xA, .root_span_id = 0xF};
  context.tags[0] = profile.Intern("acme");
  const auto a = profile.AddContext(context);
  const auto b = profile.AddContext({.span_id = 0xB, .root_span_id = 0xE});
  profile.SetEndpoint(0xF, "GET /cart");
  const auto mapping =
      profile.AddMapping({.start = 0x1000,
                          .end = 0x2000,
                          .path = profile.Intern("/usr/bin/shop"),
                          .build_id = profile.Intern("510d0a5c19eadf8043f203b4525be9be3dcb9554")});
  const auto stack = profile.AddStack(
      profile::kNone,
      profile.AddFrame({.mapping = mapping,
                        .address = 0x1234,
                        .function = profile.AddFunction({.name = profile.Intern("f")}),
                        .line = 9}));
  const auto add = [&](uint64_t milliseconds, profile::ContextId of) {
    profile.AddSample({.time_ns = kStart + milliseconds * 1'000'000,
                       .thread = profile.AddThread(7, "main"),
                       .context = of,
                       .stack = stack,
                       .value = 2'500'000});
  };
  add(10, a);
  add(12, a);
  add(14, b);
  add(30, profile::kNone);
  add(40, a);
  return profile;
}

TEST(WriteFirefox, SpansAreMarkers) {
  const json root = Written(TwoSpans());
  ExpectConsistent(root);
  ASSERT_EQ(root["threads"].size(), 1u);
  const json& thread = root["threads"][0];
  EXPECT_EQ(thread["name"], "main (cpu)");
  EXPECT_EQ(thread["pid"], "7");
  EXPECT_EQ(thread["samples"]["weightType"], "tracing-ms");
  EXPECT_EQ(thread["samples"]["weight"], json({2.5, 2.5, 2.5, 2.5, 2.5}));
  EXPECT_EQ(thread["samples"]["timeDeltas"], json({10, 2, 2, 16, 10}));
  EXPECT_EQ(thread["markers"]["startTime"], json({10, 14, 40}));
  EXPECT_EQ(thread["markers"]["endTime"], json({14, 16.5, 42.5}));
  const json& strings = root["shared"]["stringArray"];
  const json& data = thread["markers"]["data"][0];
  EXPECT_EQ(data["type"], root["meta"]["markerSchema"][0]["name"]);
  const auto text = [&](const char* key) { return strings[data[key].get<size_t>()]; };
  EXPECT_EQ(text("endpoint"), "GET /cart");
  EXPECT_EQ(text("trace_id"), "00000000000000010000000000000002");
  EXPECT_EQ(text("span_id"), "000000000000000a");
  EXPECT_EQ(text("tag0"), "acme");
  EXPECT_EQ(strings[thread["markers"]["name"][1].get<size_t>()], "span 000000000000000b");
  EXPECT_EQ(root["libs"][0]["breakpadId"], "5C0A0D51EA1980DF43F203B4525BE9BE0");
  EXPECT_EQ(root["meta"]["extra"][1]["entries"][0]["label"], "sampler.torn");
  EXPECT_EQ(root["meta"]["startTime"], 1'700'000'000'000);
}

TEST(Timelines, KeepsTheLongestSpans) {
  const Timelines all = BuildTimelines(TwoSpans());
  ASSERT_EQ(all.threads.size(), 1u);
  ASSERT_EQ(all.threads[0].spans.size(), 3u);
  const Timelines one = BuildTimelines(TwoSpans(), 1);
  ASSERT_EQ(one.threads[0].spans.size(), 1u);
  EXPECT_EQ(one.threads[0].spans[0], all.threads[0].spans[0]);
  EXPECT_EQ(one.spans_left_out, 2u);
  const Timelines two = BuildTimelines(TwoSpans(), 2);  // the two others are equally long
  ASSERT_EQ(two.threads[0].spans.size(), 2u);
  EXPECT_EQ(two.threads[0].spans[1], all.threads[0].spans[1]);
  EXPECT_EQ(BuildTimelines(TwoSpans(), 0).spans_left_out, 3u);
}

TEST(WriteFirefox, WithoutSamples) {
  const json root = Written(Profile());
  ASSERT_TRUE(root.is_object());
  ExpectConsistent(root);
  EXPECT_TRUE(root["threads"].empty());
}

TEST(FirefoxTables, MillisecondsLoseNothing) {
  EXPECT_EQ(MillisecondsText(0), "0");
  EXPECT_EQ(MillisecondsText(1), "0.000001");
  EXPECT_EQ(MillisecondsText(1'500'000), "1.5");
  EXPECT_EQ(MillisecondsText(1'700'000'000'123'456'789), "1700000000123.456789");
}

}  // namespace
}  // namespace spanprof::format
