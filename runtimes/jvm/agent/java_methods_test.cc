#include "agent/java_methods.h"

#include <gtest/gtest.h>

namespace spanprof::jvm {
namespace {

TEST(ClassNameOfSignature, IsAsPeopleWriteIt) {
  EXPECT_EQ(ClassNameOfSignature("Ljava/lang/String;"), "java.lang.String");
  EXPECT_EQ(ClassNameOfSignature("Lshop/Cart$Line;"), "shop.Cart$Line");
  EXPECT_EQ(ClassNameOfSignature("I"), "int");
  EXPECT_EQ(ClassNameOfSignature("[[J"), "long[][]");
  EXPECT_EQ(ClassNameOfSignature("[Ljava/lang/Object;"), "java.lang.Object[]");
}

TEST(ClassNameOfSignature, HiddenClassesOfOneKindHaveOneName) {
  EXPECT_EQ(ClassNameOfSignature("Lshop/Cart$$Lambda$14/0x0000000801003000;"), "shop.Cart$$Lambda");
  EXPECT_EQ(ClassNameOfSignature("Lshop/Cart$$Lambda.0x0000000801003000;"), "shop.Cart$$Lambda");
  EXPECT_EQ(ClassNameOfSignature("Ljava/lang/invoke/LambdaForm$MH.0x000000080100c400;"),
            "java.lang.invoke.LambdaForm$MH");
}

TEST(ClassNameOfSignature, TakesAnything) {
  EXPECT_EQ(ClassNameOfSignature(""), "");
  EXPECT_EQ(ClassNameOfSignature("[["), "[][]");
  EXPECT_EQ(ClassNameOfSignature("L"), "");
  EXPECT_EQ(ClassNameOfSignature("?"), "void");
}

TEST(JavaMethods, AFrameOfAnAllocatedClassSaysItsName) {
  JavaMethods methods;
  const uint64_t first = methods.ClassFrame("Lshop/Cart;");
  const uint64_t second = methods.ClassFrame("[B");
  EXPECT_NE(first, second);
  EXPECT_EQ(methods.ClassFrame("Lshop/Cart;"), first);
  EXPECT_TRUE(sampling::IsRuntimeFrame(first));
  // Needs no JVM to be told.
  EXPECT_EQ(methods.Describe(nullptr, nullptr, first).name, "shop.Cart");
  EXPECT_EQ(methods.Describe(nullptr, nullptr, second).name, "byte[]");
}

TEST(JavaMethods, OfTooManyClassesTheRestShareAFrame) {
  JavaMethods methods;
  for (int i = 0; i < 65536; ++i) {
    (void)methods.ClassFrame("Lgenerated/Class" + std::to_string(i) + ";");
  }
  const uint64_t one = methods.ClassFrame("Lone/More;");
  EXPECT_EQ(methods.ClassFrame("Lanother/One;"), one);
  EXPECT_EQ(methods.Describe(nullptr, nullptr, one).name, "[one of too many classes]");
}

TEST(JavaMethods, WhatTheJvmNeverGaveIsNotGivenToIt) {
  JavaMethods methods;
  // With a JVM's interface that is null, a question to it would be a crash.
  const uint64_t frame = sampling::kRuntimeFrame | 0x7f0000001238;
  EXPECT_EQ(methods.Describe(nullptr, nullptr, frame).name, "<unknown>");
  EXPECT_EQ(methods.unknown(), 1u);
}

}  // namespace
}  // namespace spanprof::jvm
