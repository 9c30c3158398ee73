#include "collect/access_error.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spanprof::collect {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(AccessError, NamesBothUsersAndTheCommand) {
  const Error error = AccessError(42, EACCES, {1000, 0, std::nullopt}, "spanprof context 42");
  EXPECT_EQ(error.code, EACCES);
  EXPECT_THAT(error.message, HasSubstr("process 42"));
  EXPECT_THAT(error.message, HasSubstr("belongs to uid 0"));
  EXPECT_THAT(error.message, HasSubstr("runs as uid 1000"));
  EXPECT_THAT(error.message, HasSubstr("CAP_SYS_PTRACE"));
  EXPECT_THAT(error.message, HasSubstr("/proc/sys/kernel/yama/ptrace_scope is absent"));
  EXPECT_THAT(error.hint, HasSubstr("sudo spanprof context 42"));
  EXPECT_THAT(error.hint, Not(HasSubstr("sysctl")));
}

TEST(AccessError, NamesThePtraceScope) {
  const Error error = AccessError(42, EPERM, {1000, 1000, "1"}, "spanprof context 42");
  EXPECT_THAT(error.message, HasSubstr("/proc/sys/kernel/yama/ptrace_scope is 1"));
  EXPECT_THAT(error.hint, HasSubstr("sudo sysctl kernel.yama.ptrace_scope=0"));
  // From 2 on a lower value does not help a user, and 3 cannot be taken back.
  EXPECT_THAT(AccessError(42, EPERM, {1000, 1000, "2"}, "c").hint, Not(HasSubstr("sysctl")));
}

TEST(AccessError, TellsOtherFailuresApart) {
  EXPECT_EQ(AccessError(42, ENOENT, {}, "c").code, ESRCH);
  EXPECT_EQ(AccessError(42, ESRCH, {}, "c").message, "there is no process 42");
  EXPECT_THAT(AccessError(42, EIO, {}, "c").message, HasSubstr("Input/output error"));
}

}  // namespace
}  // namespace spanprof::collect
