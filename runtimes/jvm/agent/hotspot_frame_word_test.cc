#include "agent/hotspot_frame_word.h"

#include <gtest/gtest.h>

namespace spanprof::jvm {
namespace {

constexpr uint64_t kMethod = 0x7f12'3456'7890;

TEST(HotspotFrameWord, KeepsMethodAndIndex) {
  const uint64_t word = JavaFrameWord(kMethod, 0xFFFE);
  EXPECT_TRUE(sampling::IsRuntimeFrame(word));
  EXPECT_EQ(MethodOf(word), kMethod);
  EXPECT_EQ(BytecodeIndexOf(word), 0xFFFEu);
  EXPECT_EQ(MarkerOf(word), FrameMarker::kNone);
}

TEST(HotspotFrameWord, AnIndexThatDoesNotFitIsNone) {
  EXPECT_EQ(BytecodeIndexOf(JavaFrameWord(kMethod, -1)), kNoBytecodeIndex);
  EXPECT_EQ(BytecodeIndexOf(JavaFrameWord(kMethod, -3)), kNoBytecodeIndex);
  EXPECT_EQ(BytecodeIndexOf(JavaFrameWord(kMethod, 70000)), kNoBytecodeIndex);
  EXPECT_EQ(MethodOf(JavaFrameWord(kMethod, -3)), kMethod);
}

TEST(HotspotFrameWord, MarkersAreNoMethods) {
  const uint64_t word = MarkerFrameWord(FrameMarker::kFrozenFrames);
  EXPECT_TRUE(sampling::IsRuntimeFrame(word));
  EXPECT_EQ(MarkerOf(word), FrameMarker::kFrozenFrames);
  EXPECT_STREQ(NameOf(MarkerOf(word)), "frozen_frames");
}

}  // namespace
}  // namespace spanprof::jvm
