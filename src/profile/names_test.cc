#include "profile/names.h"

#include <gtest/gtest.h>

namespace spanprof::profile {
namespace {

TEST(Names, OfAnEnumerationCanBeReadBack) {
  for (unsigned i = 0; i < kSampleKindCount; ++i) {
    EXPECT_EQ(SampleKindOf(NameOf(static_cast<SampleKind>(i))), static_cast<SampleKind>(i));
  }
  for (int i = 0; i <= static_cast<int>(FrameKind::kMarker); ++i) {
    EXPECT_EQ(FrameKindOf(NameOf(static_cast<FrameKind>(i))), static_cast<FrameKind>(i));
  }
  for (int i = 0; i <= static_cast<int>(ThreadState::kBlocked); ++i) {
    EXPECT_EQ(ThreadStateOf(NameOf(static_cast<ThreadState>(i))), static_cast<ThreadState>(i));
  }
  EXPECT_EQ(SampleKindOf("heap"), std::nullopt);
}

TEST(Names, OfAFrameFallBackFromFunctionToPlaceToAddress) {
  Profile profile;
  const FunctionId function = profile.AddFunction({.name = profile.Intern("main")});
  const FunctionId mangled = profile.AddFunction({.system_name = profile.Intern("_Z1fv")});
  const MappingId mapping = profile.AddMapping({.path = profile.Intern("/usr/lib/libc.so.6")});
  EXPECT_EQ(FrameName(profile, profile.AddFrame({.mapping = mapping, .function = function})),
            "main");
  EXPECT_EQ(FrameName(profile, profile.AddFrame({.function = mangled})), "_Z1fv");
  EXPECT_EQ(FrameName(profile, profile.AddFrame({.mapping = mapping, .address = 0x1f3a0})),
            "libc.so.6+0x1f3a0");
  EXPECT_EQ(FrameName(profile, profile.AddFrame({.address = 0xABC})), "0xabc");
  EXPECT_EQ(FrameName(profile, kNone), "[unknown]");
  EXPECT_EQ(FrameName(profile, 99), "[unknown]");
}

TEST(Names, OfIdsHaveAllTheirDigits) {
  EXPECT_EQ(SpanIdText(0xAB), "00000000000000ab");
  EXPECT_EQ(TraceIdText(1, 0xFFFF'FFFF'FFFF'FFFF), "0000000000000001ffffffffffffffff");
}

TEST(Names, OfATagWithoutOneComeFromItsPosition) {
  Profile profile;
  profile.attribute_names = {"", "tenant"};
  EXPECT_EQ(TagName(profile, 0), "tag_0");
  EXPECT_EQ(TagName(profile, 1), "tenant");
  EXPECT_EQ(TagName(profile, 9), "tag_9");
}

}  // namespace
}  // namespace spanprof::profile
