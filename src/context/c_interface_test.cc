#include <gtest/gtest.h>

#include <spanprof/context.h>

extern "C" int spanprof_c_interface_works(void);

TEST(CInterface, WorksFromC) {
  ASSERT_EQ(spanprof_init(""), 0);
  EXPECT_EQ(spanprof_c_interface_works(), 1);
}
