// The readers against a real process whose thread publishes all the time: every context that is
// accepted was published together.

#include <chrono>
#include <cstdint>
#include <signal.h>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "collect/context_snapshot.h"
#include "collect/process_directory.h"
#include "collect/remote_memory.h"
#include <spanprof/context.h>

namespace spanprof::collect {
namespace {

constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;

// Publishes 1, 2, 3, ... in all ids and in a tag, with `pause` empty loops between two.
[[noreturn]] void PublishForever(int ready, unsigned pause_loops) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (spanprof_init("ctxstorage=otel,attributes=number") != 0) _exit(3);
  for (uint64_t i = 1;; ++i) {
    spanprof_context context = {};
    context.size = sizeof(context);
    context.trace_id_high = i;
    context.trace_id_low = i * kFactor;
    context.span_id = ~i;
    context.root_span_id = i ^ kFactor;
    const std::string number = std::to_string(i % 1000);
    context.tags[0] = spanprof_intern(number.data(), number.size());
    spanprof_context_update(&context);
    if (i == 1 && write(ready, "x", 1) != 1) _exit(4);
    for (unsigned loop = 0; loop < pause_loops; ++loop) __asm__ volatile("");
  }
}

struct Tally {
  uint64_t accepted = 0;
  uint64_t torn = 0;
  uint64_t refused = 0;
};

Tally ReadFor(std::chrono::milliseconds time, pid_t pid) {
  Tally tally;
  const auto directory = ProcessDirectory::Open(pid);
  EXPECT_TRUE(directory);
  ProcessMemory memory(pid);
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    const auto snapshot = ReadContextSnapshot(*directory, memory, "test");
    if (!snapshot || snapshot->threads.size() != 1) {
      ADD_FAILURE() << (snapshot ? "threads" : snapshot.error().message);
      return tally;
    }
    const ThreadContextSnapshot& thread = snapshot->threads[0];
    if (!thread.HasContext()) {
      tally.refused += snapshot->counters.Value(ContextCounter::kInProgress) +
                       snapshot->counters.Value(ContextCounter::kChanged);
      continue;
    }
    const uint64_t i = thread.trace_id_high;
    const auto number = thread.attributes.find("number");
    const bool whole = thread.trace_id_low == i * kFactor && thread.span_id == ~i &&
                       thread.root_span_id == (i ^ kFactor) && number != thread.attributes.end() &&
                       number->second == std::to_string(i % 1000) &&
                       thread.source == RecordKind::kOtep4947;
    ++(whole ? tally.accepted : tally.torn);
  }
  return tally;
}

class RunningPublisher : public testing::TestWithParam<unsigned> {};

TEST_P(RunningPublisher, IsReadWholeOrNotAtAll) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t publisher = fork();
  if (publisher == 0) PublishForever(ready[1], GetParam());
  close(ready[1]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  const Tally tally = ReadFor(std::chrono::milliseconds(700), publisher);
  kill(publisher, SIGKILL);
  waitpid(publisher, nullptr, 0);
  EXPECT_EQ(tally.torn, 0u);
  EXPECT_GT(tally.accepted + tally.refused, 0u);
  if (GetParam() != 0) {
    EXPECT_GT(tally.accepted, 0u);
  }
  RecordProperty("accepted", static_cast<int>(tally.accepted));
  RecordProperty("refused", static_cast<int>(tally.refused));
}

// The shorter the pauses, the more looks are refused. At full speed all of them may be.
INSTANTIATE_TEST_SUITE_P(Pauses, RunningPublisher, testing::Values(0u, 2000u, 50000u));

}  // namespace
}  // namespace spanprof::collect
