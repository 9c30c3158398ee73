#include "context/endpoint_table.h"

#include <gtest/gtest.h>

#include "context/process_state.h"

namespace spanprof::context {
namespace {

TEST(EndpointTable, KnowsTheLastEndpointOfARoot) {
  ASSERT_TRUE(EnsureProcessState());
  EndpointTable table;
  EXPECT_EQ(table.Find(1), 0u);
  ASSERT_TRUE(table.Create());
  table.Set(1, 10);
  table.Set(2, 20);
  table.Set(1, 11);
  EXPECT_EQ(table.Find(1), 11u);
  EXPECT_EQ(table.Find(2), 20u);
  EXPECT_EQ(table.Find(3), 0u);
}

TEST(EndpointTable, IsBoundedKeepsTheNewestAndCountsTheRest) {
  ASSERT_TRUE(EnsureProcessState());
  EndpointTable table;
  ASSERT_TRUE(table.Create());
  constexpr uint64_t kRoots = 10 * EndpointTable::kSets * EndpointTable::kWays;
  for (uint64_t root = 1; root <= kRoots; ++root) {
    table.Set(root, static_cast<uint32_t>(root));
    ASSERT_EQ(table.Find(root), root);
  }
  uint64_t found = 0;
  for (uint64_t root = 1; root <= kRoots; ++root) {
    const uint32_t endpoint = table.Find(root);
    if (endpoint == 0) continue;
    ASSERT_EQ(endpoint, root);
    ++found;
  }
  EXPECT_EQ(found + CounterValue(static_cast<unsigned>(Counter::kEndpointEvicted)), kRoots);
}

}  // namespace
}  // namespace spanprof::context
