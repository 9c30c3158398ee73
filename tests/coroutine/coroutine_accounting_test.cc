// Every event is accounted for: what the harvester received and what was counted as lost are
// together what the target emitted, exactly, whatever the number of coroutines.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "coroutine/harvester.h"
#include "tests/coroutine/recorded_events.h"
#include "tests/coroutine/scheduled_job.h"
#include "tests/coroutine/target_process.h"

namespace spanprof::coroutine {
namespace {

struct Emitted {
  std::atomic<uint64_t> events{0};
};

// Each thread resumes its share in turn, at full speed. Counts by what it does, not by what the
// probe says.
uint64_t RunJobs(uint32_t jobs, uint64_t resumes) {
  bool stop = false;
  uint64_t events = 0;
  std::vector<Job> share;
  for (uint32_t i = 0; i < jobs; ++i) share.push_back(Looping(stop));
  events += jobs;  // births
  for (uint64_t i = 0; i < resumes; ++i) share[i % jobs].Resume();
  events += 2 * resumes;  // a resume and a suspension each
  stop = true;
  for (Job& job : share) job.Resume();  // to its end
  events += 2 * jobs;
  share.clear();
  return events + jobs;  // deaths
}

class Accounting : public testing::TestWithParam<uint32_t> {};

TEST_P(Accounting, ReceivedAndLostAreTogetherWhatTwoThreadsEmitted) {
  const uint32_t jobs = GetParam();
  const RecordingFolder folder;
  Result<RecordingWriter> writer = RecordingWriter::Create(folder.File("run.coro"));
  ASSERT_TRUE(writer) << TextOf(writer.error());
  Result<Harvester> harvester = Harvester::Create(&*writer);
  ASSERT_TRUE(harvester) << TextOf(harvester.error());
  const auto environment = harvester->Environment(16);
  ASSERT_TRUE(environment);
  const SharedWithChildren<Emitted> emitted;
  TargetProcess target(*environment, [&] {
    constexpr uint64_t kResumes = 1'000'000;
    std::thread second([&] { emitted->events += RunJobs((jobs + 1) / 2, kResumes); });
    emitted->events += RunJobs((jobs + 1) / 2, kResumes);
    second.join();
    return 0;
  });
  while (!target.HasEnded()) ASSERT_TRUE(harvester->Work());
  EXPECT_EQ(target.Wait(), 0);
  ASSERT_TRUE(harvester->Finish());
  const HarvestTotals totals = harvester->Totals();
  EXPECT_EQ(totals.received + totals.lost, emitted->events);
  EXPECT_EQ(totals.untraced, 0u);
  EXPECT_GT(totals.received, 0u);

  RecordedEvents events;
  EXPECT_TRUE(events.Add(folder.File("run.coro")).complete);
  EXPECT_EQ(events.Count(), totals.received);
  EXPECT_EQ(events.Gaps(), 0u);
  EXPECT_EQ(events.tids.size(), 2u);
  RecordProperty("emitted", std::to_string(emitted->events));
  RecordProperty("lost", std::to_string(totals.lost));
  RecordProperty("bytes_per_event", std::to_string(writer->bytes() / (totals.received + 1)));
}

INSTANTIATE_TEST_SUITE_P(Coroutines, Accounting, testing::Values(1, 100, 10'000, 100'000));

// Emits at a rate, for so many seconds; returns the number of events, births and deaths too.
uint64_t EmitAtRate(double seconds, double events_per_second) {
  using Clock = std::chrono::steady_clock;
  uint64_t resumes = 0;
  bool stop = false;
  {
    const Job job = Looping(stop);
    const Clock::time_point begin = Clock::now();
    std::chrono::duration<double> since{0};
    while (since.count() < seconds) {
      const double due = since.count() * events_per_second / 2;
      for (int i = 0; i < 1000 && static_cast<double>(resumes) < due; ++i, ++resumes) job.Resume();
      since = Clock::now() - begin;
    }
  }
  return 2 * resumes + 2;
}

// As users run it, not in a build that is many times slower.
#if defined(NDEBUG) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
constexpr bool kFullSpeed = true;
#else
constexpr bool kFullSpeed = false;
#endif

// In a soak for a minute, and then nothing may be lost: on a machine with a processor for each
// side. Else for a moment, whatever the machine does meanwhile.
TEST(CoroutineAccounting, TwentyMillionEventsASecondFromOneThreadWithTheDefaultRing) {
  const bool soak = kFullSpeed && getenv("SPANPROF_SOAK") != nullptr;
  const double seconds = soak ? 60 : 0.5;
  const RecordingFolder folder;
  Result<RecordingWriter> writer = RecordingWriter::Create(folder.File("run.coro"));
  ASSERT_TRUE(writer) << TextOf(writer.error());
  Result<Harvester> harvester = Harvester::Create(&*writer);
  ASSERT_TRUE(harvester) << TextOf(harvester.error());
  const auto environment = harvester->Environment(16);
  ASSERT_TRUE(environment);
  const SharedWithChildren<Emitted> emitted;
  TargetProcess target(*environment, [&] {
    emitted->events = EmitAtRate(seconds, 20e6);
    return 0;
  });
  Harvester::RaisePriority();  // as the command does
  while (!target.HasEnded()) ASSERT_TRUE(harvester->Work());
  EXPECT_EQ(target.Wait(), 0);
  ASSERT_TRUE(harvester->Finish());
  const HarvestTotals totals = harvester->Totals();
  EXPECT_EQ(totals.received + totals.lost, emitted->events);
  RecordProperty("events_per_second",
                 std::to_string(static_cast<double>(emitted->events) / seconds));
  RecordProperty("lost", std::to_string(totals.lost));
  if (soak && std::thread::hardware_concurrency() >= 2) {
    EXPECT_EQ(totals.lost, 0u);
  }
}

TEST(CoroutineAccounting, AFullRingLosesAndCountsAndTheTargetGoesOn) {
  Result<Harvester> harvester = Harvester::Create(nullptr);
  ASSERT_TRUE(harvester);
  auto environment = harvester->Environment(16);
  ASSERT_TRUE(environment);
  environment->push_back("SPANPROF_CORO_RING_RECORDS=256");
  const SharedWithChildren<Emitted> emitted;
  TargetProcess target(*environment, [&] {
    emitted->events = RunJobs(10, 100'000);
    return 0;
  });
  EXPECT_EQ(target.Wait(), 0);  // nobody harvests meanwhile
  ASSERT_TRUE(harvester->Work());
  ASSERT_TRUE(harvester->Finish());
  const HarvestTotals totals = harvester->Totals();
  EXPECT_EQ(totals.received, 256u);
  EXPECT_EQ(totals.received + totals.lost, emitted->events);
}

TEST(CoroutineAccounting, AMillionShortCoroutinesNeedFewStations) {
  Result<Harvester> harvester = Harvester::Create(nullptr);
  ASSERT_TRUE(harvester);
  const auto environment = harvester->Environment(16);
  ASSERT_TRUE(environment);
  constexpr uint64_t kJobs = 1'000'000;
  struct Seen {
    std::atomic<uint64_t> births{0};
    std::atomic<uint32_t> stations{0};
    std::atomic<uint64_t> untraced{0};
  };
  const SharedWithChildren<Seen> seen;
  TargetProcess target(*environment, [&] {
    for (uint64_t i = 0; i < kJobs; ++i) {
      const Job job = Short();
      job.Resume();
    }
    const auto& header = *internal::coroutine::process.header.load();
    seen->births = header.births.load();
    seen->stations = header.allocated_count.load();
    seen->untraced = header.untraced_no_station.load();
    return 0;
  });
  while (!target.HasEnded()) ASSERT_TRUE(harvester->Work());
  EXPECT_EQ(target.Wait(), 0);
  ASSERT_TRUE(harvester->Finish());
  const HarvestTotals totals = harvester->Totals();
  EXPECT_EQ(totals.received + totals.lost, 4 * kJobs);
  EXPECT_EQ(seen->births, kJobs);
  EXPECT_EQ(seen->untraced, 0u);
  EXPECT_LT(seen->stations, kJobs / 2);
}

}  // namespace
}  // namespace spanprof::coroutine
