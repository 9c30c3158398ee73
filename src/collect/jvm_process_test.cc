#include "collect/jvm_process.h"

#include <cerrno>
#include <signal.h>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "collect/fake_jvm.h"

namespace spanprof::collect {
namespace {

using testing::HasSubstr;

constexpr const char* kStatus =
    "Name:\tjava\nState:\tS (sleeping)\nTgid:\t42\nUid:\t1000\t1001\t1002\t1003\n"
    "Gid:\t100\t101\t102\t103\nSigIgn:\t0000000000000020\nSigCgt:\t2000000181005ccf\n";

TEST(ProcessStatusText, HasTheEffectiveUserAndTheCaughtSignals) {
  const auto status = ParseProcessStatus(kStatus);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, 'S');
  EXPECT_EQ(status->uid, 1001U);
  EXPECT_EQ(status->gid, 101U);
  EXPECT_TRUE(status->Catches(SIGQUIT));
  EXPECT_FALSE(status->Catches(SIGABRT));
}

TEST(ProcessStatusText, WithoutOneOfThemIsRefused) {
  for (const char* line : {"State:", "Uid:", "Gid:", "SigCgt:"}) {
    std::string text = kStatus;
    text.replace(text.find(line), 1, "x");
    EXPECT_FALSE(ParseProcessStatus(text)) << line;
  }
  EXPECT_FALSE(ParseProcessStatus(""));
}

JvmMappings FindIn(const std::string& names) {
  std::string maps;
  std::uint64_t address = 0x1000;
  for (std::size_t start = 0; start < names.size();) {
    const std::size_t end = std::min(names.find(' ', start), names.size());
    char line[128];
    std::snprintf(line, sizeof line, "%lx-%lx r-xp 0 08:01 7 ", address, address + 0x1000);
    maps += line + names.substr(start, end - start) + "\n";
    address += 0x1000;
    start = end + 1;
  }
  return FindJvm(ParseProcessMaps(maps));
}

TEST(JvmMappings, TellWhichJvmItIs) {
  EXPECT_EQ(FindIn("/bin/sh /lib/libc.so.6").machine, VirtualMachine::kNone);
  EXPECT_EQ(FindIn("/jdk/lib/server/libjvm.so").machine, VirtualMachine::kHotSpot);
  EXPECT_EQ(FindIn("/jdk/lib/j9vm/libjvm.so /jdk/lib/libj9vm29.so").machine,
            VirtualMachine::kOpenJ9);
  EXPECT_EQ(FindIn("/jdk/libj9vm29.so /jdk/libjvm.so").machine, VirtualMachine::kOpenJ9);
  EXPECT_EQ(FindIn("/home/libjvm.so.bak libjvm.so").machine, VirtualMachine::kNone);
  EXPECT_TRUE(FindIn("/lib/ld-musl-x86_64.so.1 /jdk/libjvm.so").uses_musl);
  EXPECT_EQ(FindIn("/jdk/libjvm.so /tmp/a/libspanprof-jvm.so").agent_library,
            "/tmp/a/libspanprof-jvm.so");
}

TEST(JvmArguments, TheLastWordOnAttachingCounts) {
  using std::string_literals::operator""s;
  EXPECT_FALSE(ForbidsAttaching("java\0-Xmx1g\0Main\0"s));
  EXPECT_TRUE(ForbidsAttaching("java\0-XX:+DisableAttachMechanism\0Main\0"s));
  EXPECT_FALSE(
      ForbidsAttaching("-XX:+DisableAttachMechanism\0-XX:-DisableAttachMechanism\0Main\0"s));
}

TEST(JvmProcess, ThatIsNoneIsRefused) {
  const auto jvm = JvmProcess::Open(getpid(), "spanprof jvm");
  ASSERT_FALSE(jvm);
  EXPECT_THAT(jvm.error().message, HasSubstr("is not a JVM"));
}

TEST(JvmProcess, ThatHasEndedIsRefused) {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  const auto zombie = JvmProcess::Open(pid, "spanprof jvm");
  ASSERT_FALSE(zombie);
  EXPECT_THAT(zombie.error().message, HasSubstr("has ended"));
  waitpid(pid, nullptr, 0);
  const auto gone = JvmProcess::Open(pid, "spanprof jvm");
  ASSERT_FALSE(gone);
  EXPECT_THAT(gone.error().message, HasSubstr("there is no process"));
}

TEST(JvmProcess, IsStillItselfWhenItHasEnded) {
  FakeJvm fake({});
  const auto jvm = JvmProcess::Open(fake.pid(), "spanprof jvm");
  ASSERT_TRUE(jvm) << jvm.error().message;
  EXPECT_TRUE(jvm->shares_files());
  EXPECT_TRUE(jvm->Status());
  fake.Kill();
  const auto status = jvm->Status();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ESRCH);
  const auto sent = jvm->SendQuit();
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ESRCH);
}

}  // namespace
}  // namespace spanprof::collect
