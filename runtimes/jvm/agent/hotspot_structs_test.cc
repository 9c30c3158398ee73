#include "agent/hotspot_structs.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace spanprof::jvm {
namespace {

TEST(HotspotStructs, AProcessWithoutJvmIsRefusedByName) {
  const auto tables = HotspotTables::OfThisProcess();
  ASSERT_FALSE(tables);
  EXPECT_EQ(tables.error().code, ENOTSUP);
  EXPECT_NE(tables.error().message.find("gHotSpotVMStructs"), std::string::npos);
  EXPECT_FALSE(tables.error().hint.empty());
}

TEST(HotspotStructs, ALayoutSaysWhatItMisses) {
  const auto layout = HotspotLayout::From(HotspotTables());
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().code, ENOTSUP);
  EXPECT_NE(layout.error().message.find("Abstract_VM_Version._vm_major_version"), std::string::npos)
      << layout.error().message;
}

}  // namespace
}  // namespace spanprof::jvm
