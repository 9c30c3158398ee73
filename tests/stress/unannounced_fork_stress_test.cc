// Children that no atfork handler tells of: _Fork and the raw system call. Their first call finds
// that they are children; until then they show nothing, and what their parent published is refused.

#include <array>
#include <csignal>
#include <dlfcn.h>
#include <sched.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "child_process.h"
#include "outside_reader.h"
#include "scripted_writer.h"
#include "stress_run.h"

namespace spanprof::stress {
namespace {

constexpr double kChildSeconds = 20;
constexpr uint32_t kKey = 9;

enum class Way { kUnderscoreFork, kRawClone };

enum Finding : int {
  kFine = 0,
  kContextInherited = 10,
  kSetFailed,
  kByTidFailed,
  kOtherThreadStillThere,
  kNotCounted,
  kGrandchildFailed,
  kThreadsFailed,
};

using ForkFunction = pid_t (*)();

pid_t RawClone() {
#if defined(__aarch64__)
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
#else
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
#endif
}

ForkFunction FunctionOf(Way way) {
  if (way == Way::kRawClone) return &RawClone;
  return reinterpret_cast<ForkFunction>(dlsym(RTLD_DEFAULT, "_Fork"));  // glibc 2.34
}

struct Children {
  std::atomic<bool> stop{false};
  Progress writer;
  std::atomic<uint64_t> forks{0}, read_outside{0}, failures{0};
  std::atomic<int> first_finding{0};
  std::atomic<uint64_t> first_number{0};           // of the child with that finding
  std::atomic<int> before_set{-1}, after_set{-1};  // the last OutsideStatus that was wrong

  int Run(const char* storage, Way way);
  int CheckChild(uint64_t number, ForkFunction fork_function, int depth);

 private:
  void Fail(int finding) {
    if (failures++ == 0) first_finding = finding;
  }
  void ForkLoop(ForkFunction fork_function);
};

spanprof_context GetNow(int* result) {
  spanprof_context seen = {};
  seen.size = sizeof seen;
  *result = spanprof_context_get(&seen);
  return seen;
}

int Children::CheckChild(uint64_t number, ForkFunction fork_function, int depth) {
  int result = 0;
  const Fields inherited = FromContext(GetNow(&result));
  if (result != 0 || !inherited.IsNone()) return kContextInherited;
  const spanprof_context next = ToContext(kKey, FullFields(kKey, number + 1));
  if (spanprof_context_update(&next) != 0) return kSetFailed;
  if (!(FromContext(GetNow(&result)) == FullFields(kKey, number + 1))) return kSetFailed;
  if (CounterNamed("fork_unannounced") != 1) return kNotCounted;
  if (spanprof_is_otel_mode() != 0) {
    spanprof_context seen = {};
    seen.size = sizeof seen;
    if (spanprof_context_get_by_tid(CurrentTid(), &seen) != 0) return kByTidFailed;
    if (!(FromContext(seen) == FullFields(kKey, number + 1))) return kByTidFailed;
    if (spanprof_context_get_by_tid(writer.tid, &seen) != -ESRCH) return kOtherThreadStillThere;
  }
  if (depth == 0 && number % 3 == 0) {
    const pid_t grandchild = fork_function();
    if (grandchild == 0) _exit(CheckChild(number + 1, fork_function, 1));
    std::string problem;
    if (WaitForChild(grandchild, kChildSeconds, &problem) != kFine) return kGrandchildFailed;
  }
  return kFine;
}

void Children::ForkLoop(ForkFunction fork_function) {
  for (uint64_t number = 1; !stop; ++number) {
    const spanprof_context context = ToContext(kKey, FullFields(kKey, number));
    spanprof_context_update(&context);
    const bool read_it = spanprof_is_otel_mode() != 0 && number % 4 == 1;
    int ready[2], go[2];
    if (pipe(ready) != 0 || pipe(go) != 0) return Fail(kSetFailed);
    const pid_t pid = fork_function();
    if (pid == 0) {
      alarm(static_cast<unsigned>(kChildSeconds));
      if (number % 8 == 7) _exit(kFine);
      char byte = 0;
      const auto meet_reader = [&] {
        return write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1;
      };
      if (read_it && !meet_reader()) _exit(1);
      const int finding = CheckChild(number, fork_function, 0);
      if (read_it && !meet_reader()) _exit(1);
      _exit(finding);
    }
    if (read_it) {
      OutsideReader reader(pid);
      OutsideContext seen;
      char byte = 0;
      // Before its first call: the parent's table, whatever it says, is not the child's.
      if (read(ready[0], &byte, 1) != 1) Fail(kSetFailed);
      OutsideStatus status = reader.ReadWithRetries(pid, &seen);
      if (status != OutsideStatus::kOtherTable) Fail(before_set = static_cast<int>(status));
      if (write(go[1], &byte, 1) != 1) Fail(kSetFailed);
      if (read(ready[0], &byte, 1) == 1) {
        status = reader.ReadWithRetries(pid, &seen);
        const bool right =
            status == OutsideStatus::kAccepted && seen.fields == FullFields(kKey, number + 1);
        if (!right) Fail(after_set = static_cast<int>(status));
        if (write(go[1], &byte, 1) != 1) Fail(kSetFailed);
      }
      ++read_outside;
    }
    std::string problem;
    const int finding = WaitForChild(pid, kChildSeconds + 5, &problem);
    for (const int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
    if (finding != kFine) {
      if (failures == 0) first_number = number;
      Fail(finding);
    }
    ++forks;
  }
}

int Children::Run(const char* storage, Way way) {
  if (InitForStress(storage) != 0) return 2;
  std::vector<std::thread> threads;
  threads.emplace_back([this] {
    ScriptedWriter scripted(writer, 1);
    scripted.RunUntil(stop);
  });
  threads.emplace_back([this] {  // attaches and leaves: the registry's lock is often held
    while (!stop) std::thread([] { spanprof_context_set(1, 1); }).join();
  });
  while (writer.completed < kCycle) SleepMilliseconds(1);
  threads.emplace_back([this, way] { ForkLoop(FunctionOf(way)); });
  for (std::thread& thread : threads) thread.join();
  return failures == 0 ? 0 : 3;
}

class UnannouncedForkStress : public ::testing::TestWithParam<std::tuple<const char*, Way>> {};

TEST_P(UnannouncedForkStress, TheChildStartsWithoutContext) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer does not know of these children";
  if (FunctionOf(std::get<1>(GetParam())) == nullptr) GTEST_SKIP() << "this C library has no _Fork";
  const Shared<Children> children;
  ChildProcess child(
      [&children] { return children->Run(std::get<0>(GetParam()), std::get<1>(GetParam())); });
  const StressRun run;
  while (!run.Done(children->forks >= kEnoughSignals)) SleepMilliseconds(20);
  children->stop = true;
  EXPECT_EQ(child.Wait(120), 0) << child.problem();
  run.ReportRate("forks", children->forks);
  run.Report("children_read_from_outside", children->read_outside);
  EXPECT_GE(children->forks, kEnoughSignals);
  EXPECT_EQ(children->failures, 0u)
      << "the first was finding " << children->first_finding << " of child "
      << children->first_number << ", from outside before the set " << children->before_set
      << ", after it " << children->after_set;
}

std::string CaseName(const ::testing::TestParamInfo<std::tuple<const char*, Way>>& info) {
  const auto [storage, way] = info.param;
  return std::string(storage) + (way == Way::kRawClone ? "RawClone" : "UnderscoreFork");
}

INSTANTIATE_TEST_SUITE_P(Storages, UnannouncedForkStress,
                         ::testing::Combine(::testing::Values("profiler", "otel"),
                                            ::testing::Values(Way::kUnderscoreFork,
                                                              Way::kRawClone)),
                         &CaseName);

// A child that never called anything forks by the book. Its parent has one thread: after _Fork of a
// process with several, fork may wait for a lock of the C library that nobody will give back.
TEST(UnannouncedForkGrandchildStress, OfASilentChildStartsWithoutContext) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer does not know of these children";
  ASSERT_EQ(InitForStress("otel"), 0) << spanprof_error();
  uint64_t rounds = 0, wrong = 0;
  const StressRun run;
  while (!run.Done(rounds >= kEnoughSignals)) {
    ++rounds;
    const spanprof_context context = ToContext(kKey, FullFields(kKey, rounds));
    ASSERT_EQ(spanprof_context_update(&context), 0);
    const pid_t pid = RawClone();
    if (pid == 0) {
      alarm(static_cast<unsigned>(kChildSeconds));
      const pid_t grandchild = fork();
      std::string problem;
      if (grandchild != 0) _exit(WaitForChild(grandchild, kChildSeconds, &problem));
      int result = 0;
      const bool none = FromContext(GetNow(&result)).IsNone() && result == 0;
      const bool set = spanprof_context_update(&context) == 0;
      OutsideReader reader(getpid());
      OutsideContext seen;
      const bool seen_outside = reader.Read(CurrentTid(), &seen) == OutsideStatus::kAccepted &&
                                seen.fields == FullFields(kKey, rounds);
      _exit(none && set && seen_outside ? kFine : 1);
    }
    std::string problem;
    if (WaitForChild(pid, kChildSeconds + 5, &problem) != kFine) ++wrong;
  }
  run.ReportRate("children", rounds);
  EXPECT_EQ(wrong, 0u);
}

// The child's first calls come from several threads at once: all of them find out that they are in
// a child, and it must be told only once.
TEST(UnannouncedForkThreadsStress, FirstCallsOfSeveralThreadsAtOnce) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer does not know of these children";
  const ForkFunction fork_function = FunctionOf(Way::kUnderscoreFork);
  if (fork_function == nullptr) GTEST_SKIP() << "this C library has no _Fork";
  ASSERT_EQ(InitForStress("otel"), 0) << spanprof_error();
  constexpr unsigned kThreads = 4;
  uint64_t rounds = 0, wrong = 0;
  int first_wrong = 0;
  const StressRun run;
  while (!run.Done(rounds >= kEnoughSignals)) {
    const pid_t pid = fork_function();
    if (pid == 0) {
      alarm(static_cast<unsigned>(kChildSeconds));
      std::atomic<unsigned> waiting{0}, finished{0}, unseen{0};
      std::vector<std::thread> threads;
      for (uint32_t i = 0; i < kThreads; ++i) {
        threads.emplace_back([&waiting, &finished, &unseen, i] {
          const spanprof_context context = ToContext(i + 1, FullFields(i + 1, 1));
          ++waiting;
          while (waiting < kThreads) sched_yield();
          spanprof_context_update(&context);
          ++finished;
          while (finished < kThreads) sched_yield();
          // One write only: what the table has now is what readers go on seeing.
          OutsideReader reader(getpid());
          OutsideContext seen;
          const OutsideStatus status = reader.ReadWithRetries(CurrentTid(), &seen);
          if (status != OutsideStatus::kAccepted || !(seen.fields == FullFields(i + 1, 1))) {
            ++unseen;
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      if (unseen != 0) _exit(kThreadsFailed);
      if (CounterNamed("fork_unannounced") != 1) _exit(kNotCounted);
      _exit(CountMappings(getpid(), "OTEL_CTX") == 1 ? kFine : kSetFailed);
    }
    std::string problem;
    const int finding = WaitForChild(pid, kChildSeconds + 5, &problem);
    if (finding != kFine && wrong++ == 0) first_wrong = finding;
    ++rounds;
  }
  run.ReportRate("children", rounds);
  EXPECT_GE(rounds, kEnoughSignals);
  EXPECT_EQ(wrong, 0u) << "children, the first with finding " << first_wrong;
}

}  // namespace
}  // namespace spanprof::stress
