#include <cerrno>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/format.h"
#include "profile/names.h"
#include "profile/profile_testing.h"

namespace spanprof::format {
namespace {

using profile::Profile;
using profile::SampleKind;
using ::testing::HasSubstr;

profile::StackId AddNamedStack(Profile& profile, const std::vector<std::string>& names) {
  profile::StackId stack = profile::kNone;
  for (const std::string& name : names) {
    stack = profile.AddStack(
        stack, profile.AddFrame({.function = profile.AddFunction({.name = profile.Intern(name)})}));
  }
  return stack;
}

TEST(Folded, IsALineAStack) {
  Profile profile;
  profile.AddSample({.stack = AddNamedStack(profile, {"main", "f"}), .value = 10});
  profile.AddSample({.stack = AddNamedStack(profile, {"main", "f"}), .value = 5});
  profile.AddSample({.stack = AddNamedStack(profile, {"main"}), .value = 1});
  profile.AddSample(
      {.stack = AddNamedStack(profile, {"other"}), .kind = SampleKind::kWall, .value = 99});
  profile.AddSample({.value = 3});
  EXPECT_EQ(WriteFolded(profile, {}).value(), "[no stack] 3\nmain 1\nmain;f 15\n");
  WriteOptions wall;
  wall.kind = SampleKind::kWall;
  EXPECT_EQ(WriteFolded(profile, wall).value(), "other 99\n");
}

TEST(Folded, TakesWhatKindThereIsAndCountsWhereThereIsNoValue) {
  Profile profile;
  profile.AddSample(
      {.stack = AddNamedStack(profile, {"f"}), .kind = SampleKind::kLock, .count = 7});
  EXPECT_EQ(WriteFolded(profile, {}).value(), "f 7\n");
  EXPECT_EQ(WriteFolded(Profile(), {}).value(), "");
}

TEST(Folded, AwkwardNamesSurvive) {
  const std::vector<std::string> names = {"operator new(unsigned long, int)",
                                          "Lcom/example/A;.run",
                                          "two\nlines",
                                          "C:\\path\\new",
                                          "ends in 12",
                                          " spaces ",
                                          "\\x3b",
                                          "tab\there",
                                          "\xC3\xA4"};
  Profile profile;
  profile.AddSample({.stack = AddNamedStack(profile, names), .value = 42});
  const std::string text = *WriteFolded(profile, {});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(std::count(text.begin(), text.end(), ';'), static_cast<long>(names.size()) - 1);
  const auto back = ReadFolded(text, {});
  ASSERT_TRUE(back);
  ASSERT_EQ(back->samples().size(), 1u);
  EXPECT_EQ(back->samples()[0].value, 42u);
  std::vector<std::string> read;
  for (const profile::FrameId frame : back->FramesOf(back->samples()[0].stack)) {
    read.insert(read.begin(), FrameName(*back, frame));
  }
  EXPECT_EQ(read, names);
}

TEST(Folded, ReadsOtherPeoplesFiles) {
  const auto profile = ReadFolded("java;Main.run_[j];sys_read_[k] 3\r\n\r\na;;b 1\nalone 2", {});
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->samples().size(), 3u);
  EXPECT_EQ(TotalsOf(*profile).value, 6u);
  EXPECT_EQ(profile->FramesOf(profile->samples()[1].stack).size(), 2u);
}

TEST(Folded, SaysWhichLineIsWrong) {
  const auto result = ReadFolded("a;b 1\nno number here\n", {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, EINVAL);
  EXPECT_THAT(result.error().message, HasSubstr("line 2 at byte 6 is 'no number here'"));
  EXPECT_FALSE(ReadFolded("", {}));
  EXPECT_FALSE(ReadFolded(" 5", {}));
  EXPECT_FALSE(ReadFolded("a -5", {}));
  EXPECT_FALSE(ReadFolded("a 99999999999999999999999", {}));
}

TEST(Folded, WhatDoesNotFitIsRefused) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "function " + std::to_string(i) + " 1\n";
  const auto result = ReadFolded(text, {.max_memory = 100'000});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, EFBIG);
}

}  // namespace
}  // namespace spanprof::format
