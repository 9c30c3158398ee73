#include "cli/machine_checks.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/doctor_output.h"

namespace spanprof::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A machine where everything works, seen by an ordinary user.
MachineFacts GoodMachine() {
  MachineFacts facts;
  facts.perf_event_paranoid = 2;
  facts.ptrace_scope = 0;
  facts.kptr_restrict = 0;
  facts.open_files = facts.open_files_hard = 65536;
  return facts;
}

Check CheckOf(const MachineFacts& facts, const std::string& name) {
  for (const Check& check : CheckMachine(facts)) {
    if (check.name == name) return check;
  }
  ADD_FAILURE() << "no check " << name;
  return {};
}

TEST(MachineChecks, AGoodMachineIsFine) {
  for (const Check& check : CheckMachine(GoodMachine())) {
    EXPECT_EQ(check.status, CheckStatus::kFine) << check.name << ": " << check.meaning;
    EXPECT_EQ(check.fix, "") << check.name;
  }
}

TEST(MachineChecks, TheMachineOfThisTestCanBeExamined) {
  const MachineFacts facts = GatherMachineFacts();
  EXPECT_NE(facts.kernel, "");
  EXPECT_GE(facts.tick_ns, 1'000'000u);
  EXPECT_LE(facts.tick_ns, 10'000'000u);
  EXPECT_EQ(facts.cpu_timer_error, 0);
}

TEST(MachineChecks, WithoutCpuTimersProfilingFails) {
  MachineFacts facts = GoodMachine();
  facts.cpu_timer_error = EAGAIN;
  const Check check = CheckOf(facts, "CPU timers");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_THAT(check.fix, HasSubstr("ulimit -i"));
}

TEST(MachineChecks, ATickSaysWhatTimersReach) {
  MachineFacts facts = GoodMachine();
  facts.tick_ns = 10'000'000;
  facts.perf_error = EACCES;
  EXPECT_THAT(CheckOf(facts, "kernel tick").meaning,
              AllOf(HasSubstr("100 samples"), HasSubstr("cpu=10ms"), HasSubstr("does not work")));
}

TEST(MachineChecks, AParanoidKernelIsTheCauseThatIsNamed) {
  MachineFacts facts = GoodMachine();
  facts.perf_event_paranoid = 4;
  facts.perf_error = EACCES;
  for (const char* name : {"perf cpu-clock", "kernel.perf_event_paranoid"}) {
    const Check check = CheckOf(facts, name);
    EXPECT_EQ(check.status, CheckStatus::kLimited) << name;
    EXPECT_EQ(check.fix, "sudo sysctl kernel.perf_event_paranoid=2") << name;
  }
  // With the capability that passes it by, something else is in the way.
  facts.capabilities = uint64_t{1} << 38;
  EXPECT_EQ(CheckOf(facts, "kernel.perf_event_paranoid").status, CheckStatus::kFine);
}

TEST(MachineChecks, InAContainerTheFixIsAnOptionOfTheContainer) {
  MachineFacts facts = GoodMachine();
  facts.container = "docker";
  facts.seccomp_mode = 2;
  facts.perf_error = EPERM;
  facts.memory_read_error = EPERM;
  EXPECT_THAT(CheckOf(facts, "perf cpu-clock").fix, HasSubstr("--cap-add=PERFMON"));
  EXPECT_THAT(CheckOf(facts, "process_vm_readv").fix, HasSubstr("--cap-add=SYS_PTRACE"));
  EXPECT_THAT(CheckOf(facts, "container").value, HasSubstr("seccomp"));
}

TEST(MachineChecks, PtraceScopeCountsOnlyWithoutTheCapability) {
  MachineFacts facts = GoodMachine();
  facts.ptrace_scope = 1;
  EXPECT_EQ(CheckOf(facts, "kernel.yama.ptrace_scope").fix,
            "sudo sysctl kernel.yama.ptrace_scope=0");
  facts.capabilities = uint64_t{1} << 19;
  EXPECT_EQ(CheckOf(facts, "kernel.yama.ptrace_scope").status, CheckStatus::kFine);
  facts.ptrace_scope = 3;
  EXPECT_EQ(CheckOf(facts, "kernel.yama.ptrace_scope").status, CheckStatus::kLimited);
}

TEST(MachineChecks, SmallLimitsAreNamedWithTheirFix) {
  MachineFacts facts = GoodMachine();
  facts.open_files = 256;
  facts.open_files_hard = 4096;
  facts.locked_memory = 65536;
  facts.pending_signals = 100;
  EXPECT_EQ(CheckOf(facts, "limit on open files").fix, "ulimit -n 4096");
  EXPECT_THAT(CheckOf(facts, "limit on locked memory").fix, HasSubstr("ulimit -l"));
  EXPECT_THAT(CheckOf(facts, "limit on pending signals").fix, HasSubstr("ulimit -i"));
}

TEST(MachineChecks, WithoutNewPrivilegesSudoIsOfNoUse) {
  MachineFacts facts = GoodMachine();
  facts.no_new_privileges = true;
  EXPECT_EQ(CheckOf(facts, "privileges").status, CheckStatus::kLimited);
}

TEST(DoctorOutput, ShowsFixesAndEscapesWhatOthersNamed) {
  const std::vector<CheckGroup> groups = {
      {"program evil\033[2J", {{"preload", CheckStatus::kFailed, "static\n", "no", "link it"}}}};
  EXPECT_EQ(DoctorText(groups),
            "program evil\\x1b[2J\n"
            "failed   preload  static\\x0a: no\n"
            "                  fix: link it\n"
            "\n"
            "1 failed, 0 limited, 0 fine\n");
  EXPECT_TRUE(AnyFailed(groups));
  EXPECT_THAT(DoctorJson(groups), AllOf(HasSubstr("\"failed\": 1"), Not(HasSubstr("\033"))));
}

}  // namespace
}  // namespace spanprof::cli
