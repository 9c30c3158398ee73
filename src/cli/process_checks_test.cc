#include "cli/process_checks.h"

#include <cerrno>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spanprof::cli {
namespace {

using testing::HasSubstr;

Check CheckOf(const ProcessFacts& facts, const std::string& name) {
  for (const Check& check : CheckProcess(facts)) {
    if (check.name == name) return check;
  }
  ADD_FAILURE() << "no check " << name;
  return {};
}

TEST(ProcessChecks, AProcessThatCannotBeReadFails) {
  ProcessFacts facts;
  facts.memory_error = Error{EPERM, "not permitted", "sudo spanprof doctor 1"};
  const Check check = CheckOf(facts, "memory");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_EQ(check.fix, "sudo spanprof doctor 1");
}

TEST(ProcessChecks, AnotherProfilersSignalIsNoticed) {
  ProcessFacts facts;
  EXPECT_EQ(CheckOf(facts, "SIGURG").value, "not used");
  facts.caught_signals = uint64_t{1} << (SIGURG - 1);
  EXPECT_EQ(CheckOf(facts, "SIGURG").value, "handled");
}

TEST(ProcessChecks, MoreThreadsThanItsLimitsAllowAreLimited) {
  ProcessFacts facts;
  facts.pid = 42;
  facts.threads = 300;
  facts.open_files = 1024;
  EXPECT_THAT(CheckOf(facts, "threads").fix, HasSubstr("prlimit --pid 42 --nofile="));
  facts.open_files = 4096;
  EXPECT_EQ(CheckOf(facts, "threads").status, CheckStatus::kFine);
  facts.pending_signals = 200;
  EXPECT_THAT(CheckOf(facts, "threads").fix, HasSubstr("--sigpending="));
}

TEST(ProcessChecks, ThisProcessCanBeExamined) {
  signal(SIGURG, [](int) {});
  const auto facts = GatherProcessFacts(getpid());
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->pid, getpid());
  EXPECT_FALSE(facts->memory_error);
  EXPECT_TRUE(facts->records_error);
  EXPECT_EQ(facts->threads, 1u);
  EXPECT_NE(facts->caught_signals >> (SIGURG - 1) & 1, 0u);
}

TEST(ProcessChecks, AProcessThatIsNotThereIsAnError) {
  const auto facts = GatherProcessFacts((1 << 22) - 1);
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code, ESRCH);
}

}  // namespace
}  // namespace spanprof::cli
