// What holds for every profile: interning agrees with a map, nothing that was counted is lost, and
// asking and merging keep sums.

#include <algorithm>
#include <map>
#include <rapidcheck.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "profile/names.h"
#include "profile/profile_query.h"
#include "profile/profile_testing.h"
#include "profile/sample_fold.h"

namespace spanprof::profile {
namespace {

// Interning against the simplest model that there is: a list of what was added.
RC_GTEST_PROP(ProfileProperty, InterningAgreesWithAMap, (const std::vector<std::string>& texts)) {
  Profile profile;
  std::map<std::string, StringId> model;
  for (const std::string& text : texts) {
    const StringId id = profile.Intern(text);
    const auto [known, is_new] = model.emplace(text, id);
    RC_ASSERT(known->second == id);
    RC_ASSERT(!is_new || text.empty() || id == profile.string_count() - 1);
  }
  for (const auto& [text, id] : model) RC_ASSERT(profile.Text(id) == text);
  RC_ASSERT(profile.string_count() == model.size() + (model.contains("") ? 0 : 1));
}

RC_GTEST_PROP(ProfileProperty, StacksAgreeWithAMap, ()) {
  Profile profile;
  std::map<std::vector<uint64_t>, StackId> model;
  const auto count = *rc::gen::inRange(1, 200);
  for (int i = 0; i < count; ++i) {
    const auto addresses =
        *rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(1, 4));
    std::vector<FrameId> frames;
    for (const uint64_t address : addresses)
      frames.push_back(profile.AddFrame({.address = address}));
    const StackId id = profile.AddStack(frames);
    RC_ASSERT(model.emplace(addresses, id).first->second == id);
    std::reverse(frames.begin(), frames.end());
    RC_ASSERT(profile.FramesOf(id) == frames);
  }
  // Different stacks have different numbers.
  std::map<StackId, int> ids;
  for (const auto& [addresses, id] : model) RC_ASSERT(++ids[id] == 1);
}

// Under memory pressure: numbers stay what they were, and what cannot be added is counted.
RC_GTEST_PROP(ProfileProperty, InterningUnderPressureIsConsistent, ()) {
  Profile profile(Profile::kMinMaxMemory);
  std::map<Context, ContextId, decltype([](const Context& a, const Context& b) {
             return std::tie(a.span_id, a.trace_id_low) < std::tie(b.span_id, b.trace_id_low);
           })>
      model;
  uint64_t refused = 0;
  const auto seed = *rc::gen::inRange<uint64_t>(1, 1000);
  for (uint64_t i = 0; i < 1000; ++i) {
    const Context context{.trace_id_low = i % 7, .span_id = 1 + i * seed % 700};
    const ContextId id = profile.AddContext(context);
    if (id == kNone) {
      ++refused;
      RC_ASSERT(!model.contains(context));
    } else {
      RC_ASSERT(model.emplace(context, id).first->second == id);
      RC_ASSERT(profile.contexts()[id] == context);
    }
    profile.AddSample({.time_ns = i, .context = id});
  }
  const auto counted = profile.counters().find("profile.table_full");
  RC_ASSERT(refused == (counted == profile.counters().end() ? 0 : counted->second));
  RC_ASSERT(profile.memory_used() <= profile.max_memory());
}

using Key = std::tuple<uint64_t, ThreadId, ContextId, StackId, SampleKind, ThreadState>;

std::map<Key, Totals> TotalsByKey(const std::vector<Sample>& samples) {
  std::map<Key, Totals> totals;
  for (const Sample& s : samples) {
    Totals& sum = totals[Key(MinuteOf(s.time_ns), s.thread, s.context, s.stack, s.kind, s.state)];
    sum.count += s.count;
    sum.value += s.value;
  }
  return totals;
}

RC_GTEST_PROP(ProfileProperty, FoldingKeepsTotals, (uint64_t seed)) {
  const size_t max_memory = *rc::gen::inRange(Profile::kMinMaxMemory, 3 * Profile::kMinMaxMemory);
  Profile folded(max_memory);
  Profile all;
  const Profile source =
      RandomProfile(seed, {.sample_count = static_cast<size_t>(*rc::gen::inRange(0, 1500)),
                           .variety = static_cast<size_t>(*rc::gen::inRange(1, 4)),
                           .max_depth = static_cast<size_t>(*rc::gen::inRange(0, 3)),
                           .minutes = static_cast<size_t>(*rc::gen::inRange(1, 5))});
  // Few different keys, so that samples can be folded; many samples, so that they have to be.
  std::vector<Sample> added;
  const ThreadId threads[] = {kNone, folded.AddThread(1, "a"), folded.AddThread(2, "b")};
  const ContextId contexts[] = {kNone, folded.AddContext({.span_id = 1})};
  for (int round = 0; round < 2; ++round) {
    for (Sample sample : source.samples()) {
      sample.thread = threads[sample.thread % 3];
      sample.context = contexts[sample.context % 2];
      sample.stack = kNone;
      sample.kind = static_cast<SampleKind>(static_cast<int>(sample.kind) % 2);
      sample.state = static_cast<ThreadState>(static_cast<int>(sample.state) % 2);
      added.push_back(sample);
      folded.AddSample(sample);
    }
  }
  RC_ASSERT(folded.memory_used() <= folded.max_memory());
  RC_ASSERT(!folded.counters().contains("profile.coarsened_samples"));
  RC_ASSERT(TotalsByKey(folded.samples()) == TotalsByKey(added));
  const auto away = folded.counters().find("profile.folded_samples");
  const uint64_t count = away == folded.counters().end() ? 0 : away->second;
  RC_ASSERT(folded.samples().size() + count == added.size());
  RC_CLASSIFY(count > 0, "folded");
}

RC_GTEST_PROP(ProfileProperty, NoTotalIsEverLost, (uint64_t seed)) {
  // Everything differs, and the tables are full: the sums by kind are still right.
  const Profile source = RandomProfile(
      seed, {.sample_count = static_cast<size_t>(*rc::gen::inRange(0, 1000)), .variety = 1000});
  Profile small(Profile::kMinMaxMemory);
  Merge(small, source);
  RC_ASSERT(small.memory_used() <= small.max_memory());
  for (unsigned kind = 0; kind < kSampleKindCount; ++kind) {
    const Filter filter{.kind = static_cast<SampleKind>(kind)};
    RC_ASSERT(TotalsOf(Select(small, filter)) == TotalsOf(Select(source, filter)));
  }
  RC_CLASSIFY(small.counters().contains("profile.coarsened_samples"), "coarsened");
}

RC_GTEST_PROP(ProfileProperty, SelectingEverythingChangesNothing, (uint64_t seed)) {
  const Profile profile = RandomProfile(seed);
  const Profile copy = Select(profile, {});
  RC_ASSERT(copy.samples().size() == profile.samples().size());
  RC_ASSERT(DescribeSamples(copy) == DescribeSamples(profile));
}

RC_GTEST_PROP(ProfileProperty, AFilterAndItsComplementMakeTheWhole, (uint64_t seed)) {
  const Profile profile = RandomProfile(seed);
  // By time: before and after. By anything else: each value that occurs, once.
  const uint64_t middle = profile.start_time_ns + *rc::gen::inRange<uint64_t>(0, 200'000'000'000);
  Profile parts = Select(profile, {.to_ns = middle});
  Merge(parts, Select(profile, {.from_ns = middle}));
  RC_ASSERT(DescribeSamples(parts) == DescribeSamples(profile));

  std::map<uint64_t, int> spans;
  for (const Context& context : profile.contexts()) spans[context.span_id];
  Totals sum;
  for (const auto& [span, unused] : spans) {
    const Totals part = TotalsOf(Select(profile, {.span_id = span}));
    sum.count += part.count;
    sum.value += part.value;
  }
  RC_ASSERT(sum == TotalsOf(profile));
}

RC_GTEST_PROP(ProfileProperty, MergeIsAssociativeAndCommutativeOnTotals,
              (uint64_t seed_a, uint64_t seed_b, uint64_t seed_c)) {
  const Profile a = RandomProfile(seed_a, {.sample_count = 30});
  const Profile b = RandomProfile(seed_b, {.sample_count = 30});
  const Profile c = RandomProfile(seed_c, {.sample_count = 30});
  Profile left;  // (a + b) + c
  Merge(left, a);
  Merge(left, b);
  Merge(left, c);
  Profile bc;
  Merge(bc, b);
  Merge(bc, c);
  Profile right;  // a + (b + c)
  Merge(right, a);
  Merge(right, bc);
  RC_ASSERT(DescribeSamples(left) == DescribeSamples(right));
  Profile reversed;
  Merge(reversed, c);
  Merge(reversed, b);
  Merge(reversed, a);
  RC_ASSERT(TotalsOf(reversed) == TotalsOf(left));
  for (const GroupBy by : {GroupBy::kSpan, GroupBy::kFunction, GroupBy::kThread}) {
    const auto left_groups = GroupSamples(left, by, SampleKind::kCpu);
    const auto right_groups = GroupSamples(reversed, by, SampleKind::kCpu);
    RC_ASSERT(left_groups.size() == right_groups.size());
    for (size_t i = 0; i < left_groups.size(); ++i) {
      RC_ASSERT(left_groups[i].name == right_groups[i].name);
      RC_ASSERT(left_groups[i].total_value == right_groups[i].total_value);
    }
  }
}

RC_GTEST_PROP(ProfileProperty, GroupsAddUpToTheWhole, (uint64_t seed)) {
  const Profile profile = RandomProfile(seed);
  const Totals whole = TotalsOf(Select(profile, {.kind = SampleKind::kWall}));
  for (const GroupBy by : {GroupBy::kEndpoint, GroupBy::kTrace, GroupBy::kSpan, GroupBy::kRootSpan,
                           GroupBy::kTag, GroupBy::kThread, GroupBy::kFunction, GroupBy::kKind}) {
    Totals self;
    for (const Group& group : GroupSamples(profile, by, SampleKind::kWall, "http.route")) {
      self.count += group.self_count;
      self.value += group.self_value;
      RC_ASSERT(group.total_value >= group.self_value);
      RC_ASSERT(group.total_value <= whole.value);
    }
    RC_ASSERT(self == whole);
  }
}

}  // namespace
}  // namespace spanprof::profile
