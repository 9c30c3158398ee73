#include "context/tag_dictionary.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace spanprof::context {
namespace {

TEST(TagDictionary, GivesOneNumberAValue) {
  TagDictionary dictionary;
  ASSERT_TRUE(dictionary.Create());
  const uint32_t cart = dictionary.Intern("/cart");
  EXPECT_NE(cart, 0u);
  EXPECT_EQ(dictionary.Intern("/cart"), cart);
  EXPECT_NE(dictionary.Intern("/checkout"), cart);
  EXPECT_EQ(dictionary.Find(cart), "/cart");
}

TEST(TagDictionary, TakesBytesNotText) {
  TagDictionary dictionary;
  ASSERT_TRUE(dictionary.Create());
  const std::string bytes("a\0b\xff", 4);
  EXPECT_EQ(dictionary.Find(dictionary.Intern(bytes)), bytes);
}

TEST(TagDictionary, RefusesWhatItCannotKeepWhole) {
  TagDictionary dictionary;
  ASSERT_TRUE(dictionary.Create());
  EXPECT_EQ(dictionary.Intern(""), 0u);
  EXPECT_EQ(dictionary.Intern(std::string(kMaxTagValueBytes + 1, 'x')), 0u);
  EXPECT_NE(dictionary.Intern(std::string(kMaxTagValueBytes, 'x')), 0u);
}

TEST(TagDictionary, IsBoundedByCountAndStillFindsWhatItHas) {
  TagDictionary dictionary;
  ASSERT_TRUE(dictionary.Create(10, 1 << 16));
  for (int i = 0; i < 10; ++i) ASSERT_NE(dictionary.Intern(std::to_string(i)), 0u);
  EXPECT_EQ(dictionary.Intern("one too many"), 0u);
  EXPECT_EQ(dictionary.Find(dictionary.Intern("7")), "7");
}

TEST(TagDictionary, IsBoundedByBytes) {
  TagDictionary dictionary;
  ASSERT_TRUE(dictionary.Create(1000, 256));
  int kept = 0;
  for (int i = 0; i < 100; ++i) {
    kept += dictionary.Intern(std::string(32, 'a') + std::to_string(i)) != 0 ? 1 : 0;
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 10);
}

TEST(TagDictionary, KnowsOnlyNumbersThatItGave) {
  TagDictionary dictionary;
  EXPECT_EQ(dictionary.Find(1), "");
  ASSERT_TRUE(dictionary.Create());
  dictionary.Intern("a");
  EXPECT_EQ(dictionary.Find(0), "");
  EXPECT_EQ(dictionary.Find(2), "");
  EXPECT_EQ(dictionary.Find(0xFFFFFFFF), "");
}

TEST(TagDictionary, ThreadsThatInternTheSameValuesAgree) {
  constexpr int kThreads = 4, kValues = 2000;
  TagDictionary dictionary;
  ASSERT_TRUE(dictionary.Create());
  std::vector<std::vector<uint32_t>> ids(kThreads, std::vector<uint32_t>(kValues));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&dictionary, &mine = ids[static_cast<size_t>(t)]] {
      for (size_t i = 0; i < kValues; ++i) mine[i] = dictionary.Intern("v" + std::to_string(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : ids) EXPECT_EQ(mine, ids[0]);
  EXPECT_EQ(std::set<uint32_t>(ids[0].begin(), ids[0].end()).size(), size_t{kValues});
  for (size_t i = 0; i < kValues; ++i)
    EXPECT_EQ(dictionary.Find(ids[0][i]), "v" + std::to_string(i));
}

}  // namespace
}  // namespace spanprof::context
