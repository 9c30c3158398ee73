#include "profile/profile.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/profile_testing.h"
#include "profile/sample_fold.h"

namespace spanprof::profile {
namespace {

using ::testing::ElementsAre;

uint64_t Counter(const Profile& profile, std::string_view name) {
  const auto found = profile.counters().find(name);
  return found == profile.counters().end() ? 0 : found->second;
}

TEST(Profile, StoresEqualThingsOnce) {
  Profile profile;
  const StringId name = profile.Intern("main");
  EXPECT_EQ(profile.Intern("main"), name);
  EXPECT_NE(profile.Intern("main "), name);
  EXPECT_EQ(profile.Text(name), "main");

  const FunctionId function = profile.AddFunction({.name = name});
  EXPECT_EQ(profile.AddFunction({.name = name}), function);
  EXPECT_NE(profile.AddFunction({.name = name, .start_line = 1}), function);

  const FrameId frame = profile.AddFrame({.function = function, .line = 7});
  EXPECT_EQ(profile.AddFrame({.function = function, .line = 7}), frame);
  EXPECT_NE(profile.AddFrame({.kind = FrameKind::kRust, .function = function, .line = 7}), frame);

  Context context{.span_id = 5};
  const ContextId id = profile.AddContext(context);
  EXPECT_EQ(profile.AddContext(context), id);
  context.tags[9] = name;
  EXPECT_NE(profile.AddContext(context), id);

  const ThreadId thread = profile.AddThread(1, "worker");
  EXPECT_EQ(profile.AddThread(1, "worker"), thread);
  EXPECT_NE(profile.AddThread(1, "renamed"), thread);
}

TEST(Profile, NumberZeroIsTheEmptyOne) {
  Profile profile;
  EXPECT_EQ(profile.Intern(""), kNone);
  EXPECT_EQ(profile.AddMapping({}), kNone);
  EXPECT_EQ(profile.AddFunction({}), kNone);
  EXPECT_EQ(profile.AddFrame({}), kNone);
  EXPECT_EQ(profile.AddContext({}), kNone);
  EXPECT_EQ(profile.AddThread(0, ""), kNone);
  EXPECT_EQ(profile.stacks().size(), 1u);
  EXPECT_EQ(profile.Text(12345), "");
  EXPECT_TRUE(profile.counters().empty());
}

TEST(Profile, StacksShareTheirOuterFrames) {
  Profile profile;
  const FrameId a = profile.AddFrame({.address = 1});
  const FrameId b = profile.AddFrame({.address = 2});
  const FrameId c = profile.AddFrame({.address = 3});
  const StackId ab = profile.AddStack(profile.AddStack(kNone, a), b);
  const FrameId frames[] = {a, b, c};
  const StackId abc = profile.AddStack(frames);
  EXPECT_EQ(profile.stacks()[abc].parent, ab);
  EXPECT_EQ(profile.stacks().size(), 4u);
  EXPECT_THAT(profile.FramesOf(abc), ElementsAre(c, b, a));
  EXPECT_THAT(profile.FramesOf(kNone), ElementsAre());
  EXPECT_EQ(profile.AddStack(abc, kNone), abc);
}

TEST(Profile, ANumberThatRefersToNothingIsCountedAndTakenAsNone) {
  Profile profile;
  profile.AddSample({.thread = 9, .context = 9, .stack = 9});
  EXPECT_EQ(profile.samples()[0], Sample{});
  EXPECT_EQ(profile.AddFunction({.name = 77}), kNone);
  EXPECT_EQ(profile.AddFrame({.mapping = 77, .function = 77}), kNone);
  EXPECT_EQ(profile.AddStack(77, 77), kNone);
  Context context;
  context.tags[3] = 77;
  EXPECT_EQ(profile.AddContext(context), kNone);
  EXPECT_EQ(Counter(profile, "profile.bad_reference"), 9u);
}

TEST(Profile, KnowsEndpointsByRoot) {
  Profile profile;
  profile.SetEndpoint(5, "GET /a");
  profile.SetEndpoint(5, "GET /b");
  profile.SetEndpoint(0, "nobody");
  EXPECT_EQ(profile.Text(profile.EndpointOf(5)), "GET /b");
  EXPECT_EQ(profile.EndpointOf(6), kNone);
  EXPECT_EQ(profile.EndpointOf(0), kNone);
}

TEST(Profile, CountersAddUpAndDoNotWrap) {
  Profile profile;
  profile.AddToCounter("a", 1);
  profile.AddToCounter("a", 2);
  EXPECT_EQ(Counter(profile, "a"), 3u);
  profile.AddToCounter("a", ~uint64_t{0});
  EXPECT_EQ(Counter(profile, "a"), ~uint64_t{0});
}

TEST(Profile, CanBeMoved) {
  Profile profile;
  const StringId name = profile.Intern("main");
  Profile other = std::move(profile);
  EXPECT_EQ(other.Intern("main"), name);
  profile = std::move(other);
  EXPECT_EQ(profile.Text(name), "main");
  EXPECT_EQ(profile.Intern("main"), name);
}

TEST(Profile, FullTablesGiveNoneAndCount) {
  Profile profile(Profile::kMinMaxMemory);
  StringId last = 1;
  int added = 0;
  while (last != kNone && added < 1'000'000)
    last = profile.Intern("text " + std::to_string(added++));
  EXPECT_EQ(last, kNone);
  EXPECT_GT(added, 200);
  EXPECT_EQ(Counter(profile, "profile.table_full"), 1u);
  EXPECT_LE(profile.memory_used(), profile.max_memory());
  // What is there is still found.
  EXPECT_NE(profile.Intern("text 0"), kNone);
  // A stack that does not fit is none, not a part of one.
  const FrameId frame = profile.AddFrame({.address = 1});
  std::vector<FrameId> frames(100'000, frame);
  EXPECT_EQ(profile.AddStack(frames), kNone);
}

TEST(Profile, SamplesHaveRoomEvenIfTheTablesAreFull) {
  Profile profile(Profile::kMinMaxMemory);
  for (uint32_t i = 1; i < 100'000; ++i) profile.AddContext({.span_id = i});
  EXPECT_GT(Counter(profile, "profile.table_full"), 0u);
  for (uint64_t i = 0; i < 150; ++i) profile.AddSample({.time_ns = i, .value = 1});
  EXPECT_EQ(profile.samples().size(), 150u);
  EXPECT_LE(profile.memory_used(), profile.max_memory());
}

TEST(Profile, FoldsTheOldestSamplesFirst) {
  Profile profile(Profile::kMinMaxMemory);
  const ThreadId thread = profile.AddThread(1, "");
  uint64_t added = 0;
  while (Counter(profile, "profile.folded_samples") == 0) {
    // A few hundred a minute, in order.
    const uint64_t time = (1 + added / 300) * kFoldNanoseconds + added;
    profile.AddSample({.time_ns = time, .thread = thread, .value = 2});
    ++added;
    ASSERT_LT(added, 10'000u);
  }
  ASSERT_GT(added, 400u);
  EXPECT_EQ(TotalsOf(profile), (Totals{added, 2 * added}));
  EXPECT_EQ(profile.samples().size() + Counter(profile, "profile.folded_samples"), added);
  uint64_t folded = 0;
  for (const Sample& sample : profile.samples()) {
    if (!sample.folded) continue;
    ++folded;
    EXPECT_EQ(sample.time_ns, kFoldNanoseconds) << "only the first minute's are folded";
    EXPECT_EQ(sample.thread, thread);
  }
  EXPECT_EQ(folded, 1u);
  EXPECT_EQ(Counter(profile, "profile.coarsened_samples"), 0u);
}

TEST(Profile, SamplesThatAllDifferAreCoarsenedAndCounted) {
  Profile profile(Profile::kMinMaxMemory);
  // Contexts that differ, as spans do, until their table is full; then threads.
  uint64_t added = 0;
  for (uint32_t i = 1; i <= 20'000; ++i) {
    profile.AddSample({.time_ns = 7 * kFoldNanoseconds + i,
                       .thread = profile.AddThread(i % 50, ""),
                       .context = profile.AddContext({.span_id = i}),
                       .value = i});
    added += i;
  }
  EXPECT_EQ(TotalsOf(profile), (Totals{20'000, added}));
  EXPECT_GT(Counter(profile, "profile.coarsened_samples"), 0u);
  EXPECT_LE(profile.memory_used(), profile.max_memory());
}

TEST(Profile, CountsNearTheLimitAreNotLostByFolding) {
  Profile profile(Profile::kMinMaxMemory);
  constexpr uint64_t kHuge = ~uint64_t{0} - 5;
  for (int i = 0; i < 5000; ++i) profile.AddSample({.time_ns = 1, .count = kHuge, .value = 1});
  EXPECT_EQ(profile.samples().size() + Counter(profile, "profile.dropped_samples"), 5000u);
  for (const Sample& sample : profile.samples()) EXPECT_EQ(sample.count, kHuge);
}

TEST(Profile, ManyCounterNamesDoNotTakeAllMemory) {
  Profile profile(Profile::kMinMaxMemory);
  for (int i = 0; i < 100'000; ++i) profile.AddToCounter("name " + std::to_string(i), 1);
  EXPECT_GT(Counter(profile, "profile.table_full"), 0u);
  EXPECT_LE(profile.memory_used(), profile.max_memory());
}

}  // namespace
}  // namespace spanprof::profile
