#include "profile/profile_query.h"

#include <gtest/gtest.h>

#include "profile/profile_testing.h"

namespace spanprof::profile {
namespace {

StackId AddNamedStack(Profile& profile, std::initializer_list<const char*> outermost_first) {
  StackId stack = kNone;
  for (const char* name : outermost_first) {
    stack = profile.AddStack(
        stack, profile.AddFrame({.function = profile.AddFunction({.name = profile.Intern(name)})}));
  }
  return stack;
}

// Two requests of a shop: cart (spans 11, 12 under root 10) and pay (span 20, its own root).
class ProfileQueryTest : public ::testing::Test {
 protected:
  ProfileQueryTest() {
    profile_.attribute_names = {"tenant", "http.route"};
    profile_.resource = {{"service.name", "shop"}};
    profile_.start_time_ns = 1000;
    profile_.duration_ns = 1000;
    profile_.SetEndpoint(10, "GET /cart");
    profile_.SetEndpoint(20, "POST /pay");
    profile_.SetEndpoint(99, "GET /unused");
    profile_.AddToCounter("sampler.torn", 3);
    Add(1000, 11, 10, "acme", {"main", "cart", "sql"}, 1);
    Add(1100, 12, 10, "acme", {"main", "cart"}, 2);
    Add(1200, 20, 20, "umbrella", {"main", "pay", "sql"}, 4);
    Add(1300, 0, 0, "", {"main", "idle"}, 8);
    Sample wall = profile_.samples()[0];
    wall.kind = SampleKind::kWall;
    wall.value = 100;
    profile_.AddSample(wall);
  }

  void Add(uint64_t time, uint64_t span, uint64_t root, const char* tenant,
           std::initializer_list<const char*> stack, uint64_t value) {
    Context context{
        .trace_id_high = root, .trace_id_low = root, .span_id = span, .root_span_id = root};
    context.tags[0] = profile_.Intern(tenant);
    profile_.AddSample({.time_ns = time,
                        .thread = profile_.AddThread(static_cast<uint32_t>(value), "worker"),
                        .context = profile_.AddContext(context),
                        .stack = AddNamedStack(profile_, stack),
                        .value = value});
  }

  uint64_t SelectedValue(const Filter& filter) const {
    return TotalsOf(Select(profile_, filter)).value;
  }

  Profile profile_;
};

TEST_F(ProfileQueryTest, SelectsByEveryField) {
  EXPECT_EQ(SelectedValue({}), 115u);
  EXPECT_EQ(SelectedValue({.endpoint = "GET /cart"}), 103u);
  EXPECT_EQ(SelectedValue({.endpoint = "GET /nothing"}), 0u);
  EXPECT_EQ(SelectedValue({.endpoint = ""}), 8u);
  EXPECT_EQ(SelectedValue({.trace_id = {{20, 20}}}), 4u);
  EXPECT_EQ(SelectedValue({.trace_id = {{20, 21}}}), 0u);
  EXPECT_EQ(SelectedValue({.span_id = 12}), 2u);
  EXPECT_EQ(SelectedValue({.root_span_id = 10}), 103u);
  EXPECT_EQ(SelectedValue({.tags = {{"tenant", "umbrella"}}}), 4u);
  EXPECT_EQ(SelectedValue({.tags = {{"tenant", "umbrella"}, {"http.route", "x"}}}), 0u);
  EXPECT_EQ(SelectedValue({.tags = {{"no such tag", "x"}}}), 0u);
  EXPECT_EQ(SelectedValue({.thread = "worker"}), 115u);
  EXPECT_EQ(SelectedValue({.thread = "2"}), 2u);
  EXPECT_EQ(SelectedValue({.thread = "2x"}), 0u);
  EXPECT_EQ(SelectedValue({.kind = SampleKind::kWall}), 100u);
  EXPECT_EQ(SelectedValue({.from_ns = 1100, .to_ns = 1300}), 6u);
  EXPECT_EQ(SelectedValue({.endpoint = "GET /cart", .kind = SampleKind::kCpu}), 3u);
}

TEST_F(ProfileQueryTest, TimesThatDoNotFitAreCutAtTheEndOfTime) {
  profile_.start_time_ns = ~uint64_t{0} - 5;
  const Profile selected = Select(profile_, {.from_ns = ~uint64_t{0} - 2});
  EXPECT_EQ(selected.start_time_ns, ~uint64_t{0} - 2);
  EXPECT_EQ(selected.duration_ns, 2u);
}

TEST_F(ProfileQueryTest, EveryGroupCanBeSelected) {
  for (const GroupBy by : {GroupBy::kEndpoint, GroupBy::kTrace, GroupBy::kSpan, GroupBy::kRootSpan,
                           GroupBy::kTag, GroupBy::kThread}) {
    for (const Group& group : GroupSamples(profile_, by, SampleKind::kCpu, "tenant")) {
      const Profile selected = SelectGroup(profile_, by, group.name, "tenant");
      const auto again = GroupSamples(selected, by, SampleKind::kCpu, "tenant");
      ASSERT_EQ(again.size(), 1u) << group.name;
      EXPECT_EQ(again[0].name, group.name);
      EXPECT_EQ(again[0].total_value, group.total_value) << group.name;
    }
  }
  EXPECT_EQ(TotalsOf(SelectGroup(profile_, GroupBy::kEndpoint, "(none)")).value, 8u);
  EXPECT_EQ(TotalsOf(SelectGroup(profile_, GroupBy::kFunction, "sql")).value, 105u);
  EXPECT_EQ(TotalsOf(SelectGroup(profile_, GroupBy::kKind, "wall")).value, 100u);
  EXPECT_TRUE(SelectGroup(profile_, GroupBy::kSpan, "no such span").samples().empty());
}

TEST_F(ProfileQueryTest, ASelectionHasOnlyWhatItNeeds) {
  const Profile selected =
      Select(profile_, {.endpoint = "POST /pay", .from_ns = 1100, .to_ns = 1500});
  ASSERT_EQ(selected.samples().size(), 1u);
  EXPECT_EQ(selected.contexts().size(), 2u);
  EXPECT_EQ(selected.functions().size(), 4u);
  EXPECT_EQ(selected.threads().size(), 2u);
  EXPECT_EQ(selected.endpoints().size(), 1u);
  EXPECT_EQ(selected.start_time_ns, 1100u);
  EXPECT_EQ(selected.duration_ns, 400u);
  EXPECT_EQ(selected.resource, profile_.resource);
  EXPECT_EQ(selected.counters(), profile_.counters());
  EXPECT_EQ(Describe(selected, selected.samples()[0]), Describe(profile_, profile_.samples()[2]));
}

TEST_F(ProfileQueryTest, MergeMatchesTagsByName) {
  Profile other;
  other.attribute_names = {"region", "tenant"};
  Context context{.span_id = 5};
  context.tags[0] = other.Intern("eu");
  context.tags[1] = other.Intern("acme");
  other.AddSample({.context = other.AddContext(context), .value = 1000});
  Merge(profile_, other);
  EXPECT_EQ(profile_.attribute_names, (std::vector<std::string>{"tenant", "http.route", "region"}));
  EXPECT_EQ(SelectedValue({.tags = {{"tenant", "acme"}, {"region", "eu"}}}), 1000u);
  EXPECT_EQ(SelectedValue({.tags = {{"tenant", "acme"}}}), 1103u);
}

TEST_F(ProfileQueryTest, MergeJoinsEverything) {
  Profile other;
  other.resource = {{"service.name", "bank"}, {"host.name", "a"}};
  other.start_time_ns = 500;
  other.duration_ns = 2000;
  other.periods[0] = {20, 20};
  other.periods[1] = {10, 12};
  other.SetEndpoint(10, "GET /cart/{id}");
  other.AddToCounter("sampler.torn", 4);
  other.AddSample({.time_ns = 600, .stack = AddNamedStack(other, {"main", "cart"}), .value = 1});
  profile_.periods[0] = {10, 10};
  profile_.periods[1] = {10, 10};
  Merge(profile_, other);
  EXPECT_EQ(profile_.start_time_ns, 500u);
  EXPECT_EQ(profile_.duration_ns, 2000u);
  EXPECT_EQ(profile_.resource,
            (std::vector<Attribute>{{"service.name", "shop"}, {"host.name", "a"}}));
  EXPECT_EQ(profile_.counters().at("merge.resource_conflict"), 1u);
  EXPECT_EQ(profile_.counters().at("merge.period_conflict"), 1u);
  EXPECT_EQ(profile_.periods[0], (Period{10, 10}));
  EXPECT_EQ(profile_.periods[1].requested_ns, 10u);
  EXPECT_GE(profile_.periods[1].actual_ns, 10u);
  EXPECT_LT(profile_.periods[1].actual_ns, 12u);
  EXPECT_EQ(profile_.counters().at("sampler.torn"), 7u);
  EXPECT_EQ(profile_.Text(profile_.EndpointOf(10)), "GET /cart/{id}");
  EXPECT_EQ(profile_.functions().size(), 6u) << "the same functions are not stored again";
}

TEST_F(ProfileQueryTest, MergeSaysWhichAttributesFindNoPlace) {
  Profile other;
  for (int i = 0; i < 10; ++i) other.attribute_names.push_back("other " + std::to_string(i));
  Context context;
  context.tags[9] = other.Intern("lost");
  other.AddSample({.context = other.AddContext(context), .value = 1000});
  Merge(profile_, other);
  EXPECT_EQ(profile_.attribute_names.size(), kTagCount);
  EXPECT_EQ(profile_.counters().at("merge.attribute_dropped"), 2u);
  EXPECT_EQ(TotalsOf(profile_).value, 1115u);
}

TEST_F(ProfileQueryTest, MergeWithItselfDoubles) {
  Merge(profile_, profile_);
  EXPECT_EQ(TotalsOf(profile_), (Totals{10, 230}));
}

struct Row {
  std::string name;
  uint64_t self, total;
  bool operator==(const Row&) const = default;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name << ' ' << row.self << ' ' << row.total;
}

std::vector<Row> Rows(const std::vector<Group>& groups) {
  std::vector<Row> rows;
  for (const Group& group : groups) {
    rows.push_back({group.name, group.self_value, group.total_value});
  }
  return rows;
}

TEST_F(ProfileQueryTest, GroupsByEveryField) {
  const auto cpu = [&](GroupBy by, const std::string& tag = "") {
    return Rows(GroupSamples(profile_, by, SampleKind::kCpu, tag));
  };
  using Table = std::vector<Row>;
  EXPECT_EQ(cpu(GroupBy::kEndpoint),
            (Table{{"(none)", 8, 8}, {"POST /pay", 4, 4}, {"GET /cart", 3, 3}}));
  EXPECT_EQ(cpu(GroupBy::kSpan), (Table{{"(none)", 8, 8},
                                        {"0000000000000014", 4, 4},
                                        {"000000000000000c", 2, 2},
                                        {"000000000000000b", 1, 1}}));
  EXPECT_EQ(cpu(GroupBy::kRootSpan),
            (Table{{"(none)", 8, 8}, {"0000000000000014", 4, 4}, {"000000000000000a", 3, 3}}));
  EXPECT_EQ(cpu(GroupBy::kTrace)[2].name, "000000000000000a000000000000000a");
  EXPECT_EQ(cpu(GroupBy::kTag, "tenant"),
            (Table{{"(none)", 8, 8}, {"umbrella", 4, 4}, {"acme", 3, 3}}));
  EXPECT_EQ(cpu(GroupBy::kTag, "no such tag"), (Table{{"(none)", 15, 15}}));
  EXPECT_EQ(cpu(GroupBy::kThread), (Table{{"worker", 15, 15}}));
  EXPECT_EQ(cpu(GroupBy::kKind), (Table{{"cpu", 15, 15}}));
  EXPECT_EQ(cpu(GroupBy::kFunction),
            (Table{{"idle", 8, 8}, {"sql", 5, 5}, {"cart", 2, 3}, {"main", 0, 15}, {"pay", 0, 4}}));
  EXPECT_EQ(Rows(GroupSamples(profile_, GroupBy::kKind, SampleKind::kWall)),
            (Table{{"wall", 100, 100}}));
}

TEST(GroupSamples, ARecursiveFunctionCountsOnce) {
  Profile profile;
  profile.AddSample({.stack = AddNamedStack(profile, {"f", "g", "f", "f"}), .value = 5});
  profile.AddSample({.value = 1});
  const auto groups = GroupSamples(profile, GroupBy::kFunction, SampleKind::kCpu);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].name, "f");
  EXPECT_EQ(groups[0].self_value, 5u);
  EXPECT_EQ(groups[0].total_value, 5u);
  EXPECT_EQ(groups[0].total_count, 1u);
  EXPECT_EQ(groups[1].name, "(none)");
  EXPECT_EQ(groups[1].self_value, 1u);
}

}  // namespace
}  // namespace spanprof::profile
