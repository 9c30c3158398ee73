#include "agent/java_thread_table.h"

#include <memory>

#include <gtest/gtest.h>

namespace spanprof::jvm {
namespace {

JNIEnv* Environment(uint32_t tid) {
  return reinterpret_cast<JNIEnv*>(uint64_t{tid} * 64);  // NOLINT(performance-no-int-to-ptr)
}

TEST(JavaThreadTable, FindsWhatWasAddedUntilItIsRemoved) {
  const auto table = std::make_unique<JavaThreadTable>();
  JavaThreadEntry found;
  EXPECT_FALSE(table->Find(7, found));
  ASSERT_TRUE(table->Add(7, {.jni = Environment(7), .vm_thread = 70}));
  ASSERT_TRUE(table->Find(7, found));
  EXPECT_EQ(found.jni, Environment(7));
  EXPECT_EQ(found.vm_thread, 70u);
  // The kernel gives the number to another thread, and nobody said that the first has ended.
  ASSERT_TRUE(table->Add(7, {.jni = Environment(8), .vm_thread = 80}));
  ASSERT_TRUE(table->Find(7, found));
  EXPECT_EQ(found.vm_thread, 80u);
  EXPECT_EQ(table->size(), 1u);
  table->Remove(7);
  EXPECT_FALSE(table->Find(7, found));
  EXPECT_EQ(table->size(), 0u);
}

TEST(JavaThreadTable, NumbersThatAreNoThreadsAreRefused) {
  const auto table = std::make_unique<JavaThreadTable>();
  JavaThreadEntry found;
  EXPECT_FALSE(table->Add(0, {}));
  EXPECT_FALSE(table->Add(0xFFFFFFFFu, {}));
  EXPECT_FALSE(table->Find(0, found));
  EXPECT_FALSE(table->Find(0xFFFFFFFFu, found));
}

TEST(JavaThreadTable, IsBoundedAndCountsWhoFindsNoRoom) {
  const auto table = std::make_unique<JavaThreadTable>();
  for (uint32_t tid = 1; tid <= JavaThreadTable::kMaxThreads; ++tid) {
    ASSERT_TRUE(table->Add(tid, {.jni = Environment(tid), .vm_thread = tid}));
  }
  EXPECT_FALSE(table->Add(1'000'000, {}));
  EXPECT_EQ(table->refused(), 1u);
  JavaThreadEntry found;
  for (uint32_t tid = 1; tid <= JavaThreadTable::kMaxThreads; ++tid) {
    ASSERT_TRUE(table->Find(tid, found));
    ASSERT_EQ(found.vm_thread, tid);
  }
  EXPECT_FALSE(table->Find(1'000'000, found));
}

// Those that share a run of places with one that was removed are still found.
TEST(JavaThreadTable, KeepsTheOthersWhenThreadsComeAndGo) {
  const auto table = std::make_unique<JavaThreadTable>();
  constexpr uint32_t kStay = 12'000;
  for (uint32_t tid = 1; tid <= kStay; ++tid) {
    ASSERT_TRUE(table->Add(tid, {.jni = nullptr, .vm_thread = tid}));
  }
  for (uint32_t round = 0; round < 200'000; ++round) {
    const uint32_t tid = 100'000 + round * 7;
    ASSERT_TRUE(table->Add(tid, {.jni = nullptr, .vm_thread = tid}));
    JavaThreadEntry found;
    ASSERT_TRUE(table->Find(tid, found));
    table->Remove(tid);
    ASSERT_FALSE(table->Find(tid, found));
  }
  JavaThreadEntry found;
  for (uint32_t tid = 1; tid <= kStay; ++tid) ASSERT_TRUE(table->Find(tid, found)) << tid;
  EXPECT_EQ(table->size(), kStay);
}

}  // namespace
}  // namespace spanprof::jvm
