#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "format/format.h"
#include "format/html_sha256.h"
#include "format/html_text.h"
#include "format/html_tree.h"
#include "profile/names.h"
#include "profile/profile_query.h"
#include "profile/profile_testing.h"

namespace spanprof::format {
namespace {

using profile::GroupBy;
using profile::Profile;
using profile::SampleKind;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Hex(const std::array<uint8_t, 32>& digest) {
  std::string hex;
  for (const uint8_t byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

// The vectors of FIPS 180-2, and lengths around that of a block.
TEST(HtmlSha256, KnownDigests) {
  EXPECT_EQ(Hex(Sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex(Sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(Sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Hex(Sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(HtmlText, WhatIsInvisibleIsSpelledOut) {
  EXPECT_EQ(VisibleText("plain <b> \xC3\xA9", 100), "plain <b> \xC3\xA9");
  EXPECT_EQ(VisibleText("a\xE2\x80\xAEgnp.exe", 100), "a\\u202egnp.exe");
  EXPECT_EQ(VisibleText("a\x01\n\x7F", 100), "a\\u0001\\u000a\\u007f");
  EXPECT_EQ(VisibleText("\xEF\xBB\xBFx\xE2\x80\xA8", 100), "\\ufeffx\\u2028");
  EXPECT_EQ(VisibleText("a\xFF z", 100), "a\xEF\xBF\xBD z");
}

TEST(HtmlText, LongNamesAreCutBetweenCharacters) {
  EXPECT_EQ(VisibleText("abcdef", 6), "abcdef");
  EXPECT_EQ(VisibleText("abcdefg", 6), "abcdef\xE2\x80\xA6");
  EXPECT_EQ(VisibleText("abcde\xC3\xA9xyz", 6), "abcde\xE2\x80\xA6");
}

TEST(HtmlText, JsonCannotEndItsElement) {
  std::string json;
  AppendJsonText(json, "</script><!--\"\\\n&");
  EXPECT_EQ(json, "\"\\u003c/script\\u003e\\u003c!--\\\"\\\\\\u000a\\u0026\"");
  EXPECT_EQ(nlohmann::json::parse(json).get<std::string>(), "</script><!--\"\\\n&");
}

TEST(HtmlText, Base64) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
}

using Sums = std::map<std::string, std::pair<uint64_t, uint64_t>>;  // value, count

template <class NameOfEntry>
Sums SumsOf(const HtmlTree& tree, NameOfEntry name) {
  Sums sums;
  for (const HtmlTreeEntry& entry : tree.entries) {
    auto& [value, count] = sums[name(entry)];
    value += entry.value;
    count += entry.count;
  }
  return sums;
}

Sums SumsOf(const Profile& profile, GroupBy by, SampleKind kind) {
  Sums sums;
  for (const auto& group : GroupSamples(profile, by, kind)) {
    if (group.self_count != 0) sums[group.name] = {group.self_value, group.self_count};
  }
  return sums;
}

void ExpectIsTree(const HtmlTree& tree) {
  for (uint32_t i = 1; i < tree.nodes.size(); ++i) {
    ASSERT_LT(tree.nodes[i].parent, i);
    // In front of it is its parent, or something below the parent: subtrees are neighbours.
    uint32_t before = i - 1;
    while (before > tree.nodes[i].parent) before = tree.nodes[before].parent;
    ASSERT_EQ(before, tree.nodes[i].parent);
  }
  for (const HtmlTreeEntry& entry : tree.entries) ASSERT_LT(entry.node, tree.nodes.size());
}

TEST(HtmlTree, AddsUpAsTheModelDoes) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Profile profile = profile::RandomProfile(seed, {.sample_count = 500});
    const HtmlTrees trees = BuildHtmlTrees(profile, {.groups = 254});
    for (unsigned i = 0; i < profile::kSampleKindCount; ++i) {
      const HtmlTree& tree = trees.kinds[i];
      const auto kind = static_cast<SampleKind>(i);
      ExpectIsTree(tree);
      EXPECT_EQ(tree.nodes_left_out, 0u);
      EXPECT_EQ(SumsOf(tree, [&](auto& e) { return trees.endpoints[e.endpoint]; }),
                SumsOf(profile, GroupBy::kEndpoint, kind));
      EXPECT_EQ(SumsOf(tree, [&](auto& e) { return trees.threads[e.thread]; }),
                SumsOf(profile, GroupBy::kThread, kind));
      Sums by_function = SumsOf(profile, GroupBy::kFunction, kind);
      if (const auto none = by_function.extract("(none)"); !none.empty()) {
        by_function["[no stack]"] = none.mapped();
      }
      EXPECT_EQ(SumsOf(tree, [&](auto& e) { return trees.names[tree.nodes[e.node].name].text; }),
                by_function);
    }
  }
}

TEST(HtmlTree, TrimsToItsLimitsAndKeepsTheTotals) {
  const Profile profile = profile::RandomProfile(
      7, {.sample_count = 20'000, .variety = 100, .max_depth = 20, .minutes = 1});
  const HtmlTreeLimits limits{.groups = 3, .nodes = 400, .entries = 900};
  const HtmlTrees trees = BuildHtmlTrees(profile, limits);
  EXPECT_LE(trees.endpoints.size(), limits.groups + 1);
  EXPECT_LE(trees.threads.size(), limits.groups + 1);
  EXPECT_EQ(trees.endpoints.back(), kOtherGroup);
  size_t nodes = 0;
  size_t entries = 0;
  profile::Totals totals;
  for (const HtmlTree& tree : trees.kinds) {
    ExpectIsTree(tree);
    EXPECT_GT(tree.nodes_left_out, 0u);
    nodes += tree.nodes.size();
    entries += tree.entries.size();
    for (const HtmlTreeEntry& entry : tree.entries) {
      totals.count += entry.count;
      totals.value += entry.value;
    }
  }
  EXPECT_LE(nodes, 2 * limits.nodes);  // each may have one for its smaller frames
  EXPECT_LE(entries, limits.entries);
  EXPECT_EQ(totals, TotalsOf(profile));
}

// The JSON that stands in a page.
nlohmann::json DataOf(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"profile\">";
  const size_t at = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at));
}

TEST(WriteHtml, IsOneFileThatLoadsNothing) {
  const auto page = WriteHtml(profile::RandomProfile(3), {});
  ASSERT_TRUE(page);
  EXPECT_THAT(*page, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(*page, Not(HasSubstr("unsafe-inline")));
  for (const char* loading :
       {" src=", "@import", "url(", "<link", "fetch(", "innerHTML", "eval("}) {
    EXPECT_THAT(*page, Not(HasSubstr(loading)));
  }
  const nlohmann::json data = DataOf(*page);
  EXPECT_EQ(data["names"].size(), data["frame_kinds"].get<std::string>().size());
}

TEST(WriteHtml, NamesStayText) {
  Profile profile;
  const std::string name = "</script><script>alert(1)</script>";
  profile.resource = {{"service.name", name}};
  profile.AddToCounter(name, 1);
  profile.SetEndpoint(1, name);
  profile.AddSample(
      {.thread = profile.AddThread(1, name),
       .context = profile.AddContext({.span_id = 1, .root_span_id = 1}),
       .stack = profile.AddStack(
           profile::kNone,
           profile.AddFrame({.function = profile.AddFunction({.name = profile.Intern(name)})})),
       .value = 5});
  const auto page = WriteHtml(profile, {});
  ASSERT_TRUE(page);
  EXPECT_THAT(*page, Not(HasSubstr("<script>alert")));
  const nlohmann::json data = DataOf(*page);
  EXPECT_EQ(data["endpoints"][0], name);
  EXPECT_EQ(data["threads"][0], name);
  EXPECT_EQ(data["counters"][0][0], name);
  EXPECT_EQ(data["names"].back(), name);
}

TEST(WriteHtml, WithoutSamples) {
  const auto page = WriteHtml(Profile(), {});
  ASSERT_TRUE(page);
  EXPECT_TRUE(DataOf(*page)["kinds"].empty());
}

}  // namespace
}  // namespace spanprof::format
