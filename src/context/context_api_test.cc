// The C interface as a tracer uses it. Every case is a process of its own.

#include <cstring>
#include <errno.h>
#include <fstream>
#include <pthread.h>
#include <signal.h>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "context/platform.h"
#include <spanprof/context.hpp>

namespace {

using testing::HasSubstr;

spanprof_context None() { return {sizeof(spanprof_context), 0, 0, 0, 0, 0, {}}; }

spanprof_context Get() {
  spanprof_context context = None();
  EXPECT_EQ(spanprof_context_get(&context), 0);
  return context;
}

uint64_t Counter(const std::string& name) {
  for (unsigned i = 0; spanprof_counter_name(i) != nullptr; ++i) {
    if (name == spanprof_counter_name(i)) return spanprof_counter_value(i);
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

int MyTid() { return static_cast<int>(spanprof::context::CurrentThreadId()); }

class BothModes : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string options =
        std::string("attributes=http.route;tenant,ctxstorage=") + GetParam();
    ASSERT_EQ(spanprof_init(options.c_str()), 0) << spanprof_error();
  }
};
INSTANTIATE_TEST_SUITE_P(Storage, BothModes, testing::Values("profiler", "otel"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Uninitialised, CallsKeepNothing) {
  EXPECT_EQ(spanprof_is_initialized(), 0);
  spanprof_context_set(1, 2);
  spanprof_context_set_trace(1, 2, 3, 4);
  spanprof_context_clear();
  EXPECT_EQ(spanprof_intern("a", 1), 0u);
  EXPECT_EQ(spanprof_context_set_tag(0, "a", 1), -ENODEV);
  EXPECT_EQ(spanprof_endpoint_set(1, "a", 1), -ENODEV);
  spanprof_context context = None();
  EXPECT_EQ(spanprof_context_update(&context), -ENODEV);
  EXPECT_EQ(spanprof_context_get(&context), -ENODEV);
  context.span_id = 9;
  spanprof_context_swap(nullptr, &context);
  EXPECT_EQ(context.span_id, 0u);
  spanprof_shutdown();
  ASSERT_EQ(spanprof_init(nullptr), 0);
  EXPECT_EQ(Get().span_id, 0u);
}

TEST_P(BothModes, ModeTellsTheTruth) {
  EXPECT_EQ(spanprof_is_initialized(), 1);
  EXPECT_EQ(spanprof_is_otel_mode(), std::string(GetParam()) == "otel" ? 1 : 0);
}

TEST_P(BothModes, AThreadThatSetNothingHasNoContext) {
  const spanprof_context context = Get();
  EXPECT_EQ(context.span_id, 0u);
  EXPECT_EQ(context.root_span_id, 0u);
}

TEST_P(BothModes, SetAndGet) {
  spanprof_context_set(10, 20);
  const spanprof_context context = Get();
  EXPECT_EQ(context.span_id, 10u);
  EXPECT_EQ(context.root_span_id, 20u);
  EXPECT_EQ(context.trace_id_high, 0u);
  EXPECT_EQ(context.trace_id_low, 0u);
}

TEST_P(BothModes, IdsWithTheSameChecksumAreContextsLikeAnyOther) {
  spanprof_context_set(0x0000000100000002u, 0x0000000200000001u);
  EXPECT_EQ(Get().span_id, 0x0000000100000002u);
  spanprof_context_set(0x0000000300000004u, 0x0000000400000003u);
  EXPECT_EQ(Get().root_span_id, 0x0000000400000003u);
}

TEST_P(BothModes, ASetWithoutATraceTakesTheTraceAway) {
  spanprof_context_set_trace(1, 2, 3, 4);
  EXPECT_EQ(Get().trace_id_high, 1u);
  EXPECT_EQ(Get().trace_id_low, 2u);
  spanprof_context_set(5, 6);
  EXPECT_EQ(Get().trace_id_high, 0u);
  EXPECT_EQ(Get().trace_id_low, 0u);
  EXPECT_EQ(Get().span_id, 5u);
}

TEST_P(BothModes, TraceFlagsBelongToOneUpdate) {
  spanprof_context next = None();
  next.trace_id_low = 1;
  next.trace_flags = 1;
  next.span_id = 2;
  ASSERT_EQ(spanprof_context_update(&next), 0);
  EXPECT_EQ(Get().trace_flags, 1u);
  spanprof_context_set_trace(0, 1, 3, 0);
  EXPECT_EQ(Get().trace_flags, 0u);
}

TEST_P(BothModes, TagsStayWhenTheSpanChanges) {
  ASSERT_EQ(spanprof_context_set_tag(1, "acme", 4), 0);
  spanprof_context_set(10, 20);
  const uint32_t acme = spanprof_intern("acme", 4);
  EXPECT_NE(acme, 0u);
  EXPECT_EQ(Get().tags[1], acme);
  EXPECT_EQ(Get().tags[0], 0u);
  ASSERT_EQ(spanprof_context_set_tag_id(0, acme), 0);
  EXPECT_EQ(Get().tags[0], acme);
  ASSERT_EQ(spanprof_context_set_tag(1, nullptr, 0), 0);
  EXPECT_EQ(Get().tags[1], 0u);
  EXPECT_EQ(Get().tags[0], acme);
  EXPECT_EQ(Get().span_id, 10u);
}

TEST_P(BothModes, AKnownTagIsSetInlineOrLeftToTheLibrary) {
  spanprof_context_set_trace(1, 2, 3, 4);
  const uint32_t acme = spanprof_intern("acme", 4);
  const bool is_set = spanprof::internal::TrySetTag(*spanprof_thread_v1, 1, acme);
  EXPECT_EQ(is_set, spanprof_is_otel_mode() == 0);
  EXPECT_EQ(Get().tags[1], is_set ? acme : 0u);
  EXPECT_EQ(Get().span_id, 3u);
  EXPECT_EQ(Get().trace_id_high, 1u);
}

TEST_P(BothModes, TagsThatDoNotExistAreRefusedAndCounted) {
  EXPECT_EQ(spanprof_context_set_tag(2, "x", 1), -EINVAL);
  EXPECT_EQ(spanprof_context_set_tag(1000, "x", 1), -EINVAL);
  EXPECT_EQ(spanprof_context_set_tag_id(0, 12345), -EINVAL);
  spanprof_context next = None();
  next.tags[5] = spanprof_intern("x", 1);
  EXPECT_EQ(spanprof_context_update(&next), -EINVAL);
  EXPECT_EQ(Counter("unknown_tag"), 4u);
}

TEST_P(BothModes, UpdateReplacesEverything) {
  spanprof_context_set_tag(1, "acme", 4);
  spanprof_context next = None();
  next.trace_id_high = 1;
  next.trace_id_low = 2;
  next.span_id = 3;
  next.root_span_id = 4;
  next.tags[0] = spanprof_intern("/cart", 5);
  ASSERT_EQ(spanprof_context_update(&next), 0);
  const spanprof_context now = Get();
  EXPECT_EQ(memcmp(&now, &next, sizeof now), 0);
}

TEST_P(BothModes, AContextWithoutItsSizeIsRefused) {
  spanprof_context context = None();
  context.size = 8;
  EXPECT_EQ(spanprof_context_update(&context), -EINVAL);
  EXPECT_EQ(spanprof_context_get(&context), -EINVAL);
  EXPECT_EQ(spanprof_context_update(nullptr), -EINVAL);
  EXPECT_EQ(spanprof_context_get(nullptr), -EINVAL);
}

TEST_P(BothModes, SwapMovesAContextAndGivesItBack) {
  spanprof_context_set_trace(1, 2, 3, 4);
  spanprof_context_set_tag(0, "/a", 2);
  const spanprof_context mine = Get();
  spanprof_context saved = None();
  spanprof_context_swap(nullptr, &saved);
  EXPECT_EQ(memcmp(&saved, &mine, sizeof mine), 0);
  EXPECT_EQ(Get().span_id, 0u);
  EXPECT_EQ(Get().tags[0], 0u);
  spanprof_context_set(9, 9);
  spanprof_context_swap(&saved, nullptr);
  const spanprof_context again = Get();
  EXPECT_EQ(memcmp(&again, &mine, sizeof mine), 0);
}

TEST_P(BothModes, ClearLeavesNothing) {
  spanprof_context_set_trace(1, 2, 3, 4);
  spanprof_context_set_tag(0, "/a", 2);
  spanprof_context_clear();
  const spanprof_context context = Get();
  const spanprof_context none = None();
  EXPECT_EQ(memcmp(&context, &none, sizeof none), 0);
}

TEST_P(BothModes, ScopesNestAndGiveTheParentBackWithItsTags) {
  spanprof::set(1, 100);
  spanprof::set_tag(0, "outer");
  const spanprof_context outer = Get();
  {
    const spanprof::Scope middle(7, 8, 2, 100);
    spanprof::set_tag(0, "middle");
    EXPECT_EQ(Get().trace_id_high, 7u);
    {
      const spanprof::Scope inner(3, 100);
      EXPECT_EQ(Get().span_id, 3u);
      EXPECT_EQ(Get().trace_id_high, 0u);
    }
    EXPECT_EQ(Get().span_id, 2u);
    EXPECT_EQ(Get().trace_id_low, 8u);
    EXPECT_EQ(Get().tags[0], spanprof_intern("middle", 6));
  }
  const spanprof_context now = Get();
  EXPECT_EQ(memcmp(&now, &outer, sizeof now), 0);
}

TEST_P(BothModes, ThreadsHaveContextsOfTheirOwn) {
  spanprof_context_set(1, 2);
  std::thread([] {
    EXPECT_EQ(Get().span_id, 0u);
    spanprof_context_set(3, 4);
    EXPECT_EQ(Get().span_id, 3u);
  }).join();
  EXPECT_EQ(Get().span_id, 1u);
}

// A read is copied in several loads. When a handler writes in between, the copy would be of two
// contexts, each of which has the right checksum.
TEST_P(BothModes, AReadThatAHandlersWriteInterruptsIsWhole) {
  static uint32_t routes[2];
  routes[0] = spanprof_intern("even", 4);
  routes[1] = spanprof_intern("odd", 3);
  static std::atomic<uint64_t> written{0};
  struct sigaction action = {};
  action.sa_handler = [](int) {
    const uint64_t n = ++written;
    spanprof_context next = None();
    next.span_id = n;
    next.root_span_id = n;
    next.trace_id_low = n;
    next.tags[0] = routes[n % 2];
    spanprof_context_update(&next);
  };
  sigaction(SIGUSR1, &action, nullptr);
  std::atomic<bool> stop{false};
  const pthread_t reader = pthread_self();
  std::thread storm([&stop, reader] {
    while (!stop) pthread_kill(reader, SIGUSR1);
  });
  uint64_t seen = 0;
  while (written < 500 || seen < 100) {
    spanprof_context now = None();
    if (spanprof_context_get(&now) != 0 || now.span_id == 0) continue;
    ++seen;
    ASSERT_EQ(now.root_span_id, now.span_id);
    ASSERT_EQ(now.trace_id_low, now.span_id);
    ASSERT_EQ(now.tags[0], routes[now.span_id % 2]);
  }
  stop = true;
  storm.join();
}

// What managed code leaves in the object when it is interrupted, or thrown out, in its middle.
void LeaveManagedWriteOpen() {
  spanprof_thread_v1->mark.store(spanprof::internal::kFirstManagedMark +
                                 7 * spanprof::internal::kManagedMarkStep);
  spanprof_thread_v1->record.checksum.store(0);
}

TEST_P(BothModes, AWriteOnTopOfAManagedWriteIsRefused) {
  spanprof_context_set(1, 2);
  LeaveManagedWriteOpen();
  spanprof_context_set(3, 4);
  EXPECT_EQ(Counter("nested_write_refused"), 1u);
  EXPECT_EQ(Counter("abandoned_write"), 0u);
  EXPECT_EQ(spanprof_thread_v1->record.span_id.load(), 1u);
}

TEST_P(BothModes, AManagedWriteThatTheRuntimeGivesUpMakesRoomForTheNext) {
  spanprof_context_set_trace(5, 6, 1, 2);
  ASSERT_EQ(spanprof_context_set_tag(1, "acme", 4), 0);
  LeaveManagedWriteOpen();
  spanprof::internal::AbandonOpenWrite(*spanprof_thread_v1);
  spanprof_context_set(3, 4);
  EXPECT_EQ(Counter("abandoned_write"), 1u);
  EXPECT_EQ(Counter("nested_write_refused"), 0u);
  const spanprof_context context = Get();
  EXPECT_EQ(context.span_id, 3u);
  EXPECT_EQ(context.trace_id_high, 0u);
  EXPECT_EQ(context.tags[1], 0u) << "half a context may be in there: it starts afresh";
}

TEST_P(BothModes, ThereIsNothingToGiveUpWhereNoWriteIsOpen) {
  spanprof_context_set(1, 2);
  const uintptr_t mark = spanprof_thread_v1->mark.load();
  spanprof::internal::AbandonOpenWrite(*spanprof_thread_v1);
  EXPECT_EQ(spanprof_thread_v1->mark.load(), mark);
  EXPECT_EQ(Get().span_id, 1u);
}

TEST_P(BothModes, AttributesCanBeAddedUpToTen) {
  EXPECT_EQ(spanprof_attribute("tenant", 6), 1);
  EXPECT_EQ(spanprof_attribute("region", 6), 2);
  EXPECT_EQ(spanprof_attribute("region", 6), 2);
  EXPECT_EQ(spanprof_context_set_tag(2, "eu", 2), 0);
  for (int i = 3; i < 10; ++i) {
    const std::string name = "a" + std::to_string(i);
    EXPECT_EQ(spanprof_attribute(name.data(), name.size()), i);
  }
  EXPECT_EQ(spanprof_attribute("eleventh", 8), -ENOSPC);
  EXPECT_EQ(spanprof_attribute("", 0), -EINVAL);
}

TEST_P(BothModes, InitAgainIsFineWithTheSameOptionsAndNamesBothOtherwise) {
  EXPECT_EQ(spanprof_init(""), 0);
  const std::string other = std::string(GetParam()) == "otel" ? "profiler" : "otel";
  EXPECT_EQ(spanprof_init(("ctxstorage=" + other).c_str()), -EBUSY);
  EXPECT_THAT(spanprof_error(), HasSubstr("ctxstorage=otel"));
  EXPECT_THAT(spanprof_error(), HasSubstr("ctxstorage=profiler"));
  EXPECT_EQ(spanprof_init("attributes=a;b"), -EBUSY);
  EXPECT_THAT(spanprof_error(), HasSubstr("a;b"));
  EXPECT_THAT(spanprof_error(), HasSubstr("http.route;tenant"));
}

TEST_P(BothModes, ShutdownKeepsNothingAndInitStartsAfresh) {
  spanprof_context_set(1, 2);
  spanprof_shutdown();
  EXPECT_EQ(spanprof_is_initialized(), 0);
  EXPECT_EQ(spanprof_is_otel_mode(), 0);
  spanprof_context_set(3, 4);
  spanprof_context context = None();
  EXPECT_EQ(spanprof_context_get(&context), -ENODEV);
  ASSERT_EQ(spanprof_init("ctxstorage=otel,attributes=x"), 0) << spanprof_error();
  EXPECT_EQ(Get().span_id, 0u);
  spanprof_context_set(5, 6);
  EXPECT_EQ(spanprof_context_get_by_tid(MyTid(), &context), 0);
  EXPECT_EQ(context.span_id, 5u);
}

#if defined(__linux__)
TEST_P(BothModes, ForkGoesOnWithTheContextOfTheForkingThreadOnly) {
  spanprof_context_set_trace(1, 2, 3, 4);
  spanprof_context_set_tag(0, "/a", 2);
  const spanprof_context before = Get();
  int other_tid = 0;
  pthread_barrier_t ready, done;
  pthread_barrier_init(&ready, nullptr, 2);
  pthread_barrier_init(&done, nullptr, 2);
  std::thread other([&] {
    spanprof_context_set(99, 99);
    other_tid = MyTid();
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&done);
  });
  pthread_barrier_wait(&ready);
  const pid_t child = fork();
  if (child == 0) {
    const spanprof_context now = Get();
    if (memcmp(&now, &before, sizeof now) != 0) _exit(1);
    spanprof_context by_tid = None();
    if (spanprof_is_otel_mode() != 0) {
      if (spanprof_context_get_by_tid(MyTid(), &by_tid) != 0 || by_tid.span_id != 3) _exit(2);
      if (spanprof_context_get_by_tid(other_tid, &by_tid) != -ESRCH) _exit(3);
    }
    spanprof_context_set(5, 6);
    if (Get().span_id != 5 || Get().tags[0] != before.tags[0]) _exit(4);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Get().span_id, 3u);
  pthread_barrier_wait(&done);
  other.join();
}

// The child's first caller is a new thread. It must not get the object that the forking thread,
// whose pointer nobody has changed, will go on writing to.
TEST_P(BothModes, ANewThreadOfAnUnannouncedChildDoesNotShareAnObject) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer does not allow threads in a forked child";
#endif
  if (getenv("SPANPROF_EMULATED") != nullptr) GTEST_SKIP() << "qemu's fork does not wipe memory";
  spanprof_context_set(1, 2);
  const pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) {
    pthread_barrier_t set, checked;
    pthread_barrier_init(&set, nullptr, 2);
    pthread_barrier_init(&checked, nullptr, 2);
    bool thread_is_right = false;
    std::thread other([&] {
      spanprof_context_set(30, 40);
      pthread_barrier_wait(&set);
      pthread_barrier_wait(&checked);
      thread_is_right = Get().span_id == 30;
    });
    pthread_barrier_wait(&set);
    const bool was_empty = Get().span_id == 0;
    spanprof_context_set(50, 60);
    const bool is_right = Get().span_id == 50;
    pthread_barrier_wait(&checked);
    other.join();
    _exit(was_empty && is_right && thread_is_right && Counter("fork_unannounced") == 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}
#endif

TEST(ByTid, IsNotSupportedInProfilerMode) {
  ASSERT_EQ(spanprof_init("ctxstorage=profiler"), 0);
  spanprof_context context = None();
  EXPECT_EQ(spanprof_context_get_by_tid(MyTid(), &context), -ENOTSUP);
}

TEST(ByTid, ReadsAnotherThreadWhileItLives) {
  ASSERT_EQ(spanprof_init("ctxstorage=otel,attributes=a"), 0);
  spanprof_context_set_trace(1, 2, 3, 4);
  spanprof_context_set_tag(0, "x", 1);
  const int tid = MyTid();
  std::thread([tid] {
    spanprof_context context = None();
    EXPECT_EQ(spanprof_context_get_by_tid(tid, &context), 0);
    EXPECT_EQ(context.trace_id_high, 1u);
    EXPECT_EQ(context.root_span_id, 4u);
    EXPECT_EQ(context.tags[0], spanprof_intern("x", 1));
  }).join();
  int dead = 0;
  std::thread([&dead] {
    spanprof_context_set(7, 8);
    dead = MyTid();
  }).join();
  spanprof_context context = None();
  EXPECT_EQ(spanprof_context_get_by_tid(dead, &context), -ESRCH);
  EXPECT_EQ(spanprof_context_get_by_tid(0, &context), -ESRCH);
  EXPECT_EQ(spanprof_context_get_by_tid(-5, &context), -ESRCH);
  EXPECT_EQ(spanprof_context_get_by_tid(1 << 30, &context), -ESRCH);
}

TEST(Options, ErrorsNameTheOptionAndItsValues) {
  EXPECT_EQ(spanprof_init("ctxstorage=ottel"), -EINVAL);
  EXPECT_THAT(spanprof_error(), HasSubstr("ctxstorage"));
  EXPECT_THAT(spanprof_error(), HasSubstr("ottel"));
  EXPECT_THAT(spanprof_error(), HasSubstr("profiler"));
  EXPECT_EQ(spanprof_is_initialized(), 0);
  EXPECT_EQ(spanprof_init("ctxstorage=otel"), 0);
  EXPECT_STREQ(spanprof_error(), "");
}

TEST(Latency, HistogramsAreKeptWhenAskedFor) {
  ASSERT_EQ(spanprof_init("latency=on"), 0);
  for (uint64_t i = 1; i <= 1000; ++i) spanprof_context_set(i, i);
  for (int i = 0; i < 1000; ++i) Get();
  spanprof_latency_summary writes = {}, reads = {};
  ASSERT_EQ(spanprof_latency(SPANPROF_LATENCY_WRITE, &writes), 0);
  ASSERT_EQ(spanprof_latency(SPANPROF_LATENCY_HANDLER_READ, &reads), 0);
  EXPECT_EQ(writes.count, 1000u);
  EXPECT_EQ(reads.count, 1000u);
  EXPECT_LE(writes.p50_ns, writes.p99_ns);
  EXPECT_LE(writes.p99_ns, writes.p999_ns);
  EXPECT_EQ(spanprof_latency(2, &writes), -EINVAL);
}

#if defined(__linux__)

std::string Maps() {
  std::ifstream file("/proc/self/maps");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// qemu's user emulation has limits, threads and a fork of its own.
#define SKIP_WHEN_EMULATED()                                              \
  if (getenv("SPANPROF_EMULATED") != nullptr) {                           \
    GTEST_SKIP() << "not the same under " << getenv("SPANPROF_EMULATED"); \
  }                                                                       \
  static_assert(true)

TEST(GoodGuest, WithAFileSizeLimitItLivesAndUsesOtherMemory) {
  SKIP_WHEN_EMULATED();
  rlimit limit = {};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  ASSERT_EQ(spanprof_init("ctxstorage=otel,log=none"), 0) << spanprof_error();
  EXPECT_EQ(spanprof_is_otel_mode(), 1);
  EXPECT_THAT(Maps(), testing::Not(HasSubstr("/memfd:DD_OTEL_CTX")));
  spanprof_context_set(1, 2);
  spanprof_context context = None();
  EXPECT_EQ(spanprof_context_get_by_tid(MyTid(), &context), 0);
}

TEST(GoodGuest, WithoutMemoryForTheTableItFallsBackAndSaysSoOnce) {
  SKIP_WHEN_EMULATED();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need an unlimited address space";
#endif
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages;
  rlimit limit = {};
  getrlimit(RLIMIT_AS, &limit);
  // Room for everything but a table of four million slots (160 MiB).
  limit.rlim_cur = pages * 4096 + (96u << 20);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  testing::internal::CaptureStderr();
  ASSERT_EQ(spanprof_init("ctxstorage=otel,ctxslots=4194304"), 0) << spanprof_error();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("4194304 slots"));
  EXPECT_EQ(spanprof_is_otel_mode(), 0);
  spanprof_context_set(1, 2);
  EXPECT_EQ(Get().span_id, 1u);
}

TEST(GoodGuest, ProfilerModePublishesNothingOutside) {
  ASSERT_EQ(spanprof_init("ctxstorage=profiler"), 0);
  EXPECT_THAT(Maps(), testing::Not(HasSubstr("OTEL_CTX")));
  EXPECT_THAT(Maps(), HasSubstr("SPANPROF_CORE"));
}

TEST(GoodGuest, StartsNoThread) {
  SKIP_WHEN_EMULATED();
  ASSERT_EQ(spanprof_init("ctxstorage=otel"), 0);
  spanprof_context_set(1, 2);
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("Threads:", 0) == 0) {
      EXPECT_EQ(line, "Threads:\t1");
    }
  }
}

#endif

}  // namespace
