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

// Those that share a run of places with one that was removed are still found. The table is as full
// as it gets, so that there are long runs.
TEST(JavaThreadTable, KeepsTheOthersWhenThreadsComeAndGo) {
  const auto table = std::make_unique<JavaThreadTable>();
  constexpr uint32_t kThreads = JavaThreadTable::kMaxThreads;
  const auto tid_of = [](uint32_t number) { return (number * 7919) % 4'194'301 + 1; };
  const auto is_there = [](uint32_t number, uint32_t round) { return number % 3 != round % 3; };
  JavaThreadEntry found;
  for (uint32_t number = 0; number < kThreads; ++number) {
    ASSERT_TRUE(table->Add(tid_of(number), {.jni = nullptr, .vm_thread = number}));
  }
  for (uint32_t round = 0; round < 9; ++round) {
    for (uint32_t number = 0; number < kThreads; ++number) {
      if (!is_there(number, round)) table->Remove(tid_of(number));
    }
    for (uint32_t number = 0; number < kThreads; ++number) {
      ASSERT_EQ(table->Find(tid_of(number), found), is_there(number, round)) << number;
      if (is_there(number, round)) {
        ASSERT_EQ(found.vm_thread, number);
      }
    }
    for (uint32_t number = 0; number < kThreads; ++number) {
      ASSERT_TRUE(table->Add(tid_of(number), {.jni = nullptr, .vm_thread = number}));
    }
    ASSERT_EQ(table->size(), kThreads);
  }
}

}  // namespace
}  // namespace spanprof::jvm
