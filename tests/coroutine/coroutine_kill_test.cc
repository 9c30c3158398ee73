// Either side is killed at any moment: the target goes on, the next harvester takes over, every
// published event is in one of the files, and every file is readable.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "coroutine/coroutine_history.h"
#include "coroutine/harvester.h"
#include "tests/coroutine/recorded_events.h"
#include "tests/coroutine/scheduled_job.h"
#include "tests/coroutine/target_process.h"

namespace spanprof::coroutine {
namespace {

struct Progress {
  std::atomic<bool> ready{false};
  std::atomic<bool> stop{false};
  std::atomic<pid_t> harvester{0};  // that has attached
  std::atomic<uint64_t> events{0};
};

// Resumes a few jobs for as long as it is asked to, with pauses in which the harvester falls
// asleep.
int RunUntilStopped(Progress* progress) {
  bool stop = false;
  std::vector<Job> jobs;
  for (int i = 0; i < 20; ++i) jobs.push_back(Looping(stop));
  progress->ready = true;
  uint64_t resumes = 0;
  while (!progress->stop) {
    for (int i = 0; i < 500; ++i) jobs[resumes++ % jobs.size()].Resume();
    usleep(resumes % 20'000 == 0 ? 30'000 : 100);
  }
  stop = true;
  for (Job& job : jobs) job.Resume();
  progress->events = 2 * resumes + 2 * jobs.size();  // without births and deaths
  return 0;
}

// The whole number in a soak.
int Rounds(int usual) { return getenv("SPANPROF_SOAK") == nullptr ? usual : 200; }

TEST(CoroutineKill, NothingPublishedIsMissingWhenHarvestersAreKilled) {
  const int rounds = Rounds(25);
  const RecordingFolder folder;
  const SharedWithChildren<Progress> progress;
  // A ring for the time without a harvester.
  TargetProcess target({"SPANPROF_CORO_RING_RECORDS=1048576"},
                       [&] { return RunUntilStopped(progress.operator->()); });
  while (!progress->ready) usleep(1000);
  std::mt19937 random(7);
  const auto harvest = [&](const std::string& file) {
    Result<RecordingWriter> writer = RecordingWriter::Create(file);
    Result<Harvester> harvester = Harvester::Create(&*writer);
    if (!harvester || !harvester->AttachProcess(target.pid())) return 1;
    progress->harvester = getpid();
    while (harvester->live_targets() > 0) {
      if (!harvester->Work()) return 2;
    }
    return harvester->Finish() ? 0 : 3;
  };
  // What the last one that was killed leaves behind is removed with the test's folder.
  const std::string folders = "TMPDIR=" + folder.File("");
  for (int round = 0; round < rounds; ++round) {
    TargetProcess harvester({folders, "XDG_RUNTIME_DIR="},
                            [&] { return harvest(folder.File(std::to_string(round))); });
    usleep(5000 + random() % 60'000);
    ASSERT_FALSE(target.HasEnded());
    harvester.Kill();
  }
  TargetProcess last({}, [&] { return harvest(folder.File("last")); });
  while (progress->harvester != last.pid() && !last.HasEnded()) usleep(1000);
  progress->stop = true;
  EXPECT_EQ(target.Wait(), 0);
  EXPECT_EQ(last.Wait(), 0);

  RecordedEvents events;
  std::vector<std::string> files;
  for (int round = 0; round < rounds; ++round) {
    const std::string file = folder.File(std::to_string(round));
    // One that was killed before it began has nothing to say.
    std::error_code none;
    if (std::filesystem::file_size(file, none) < kRecordingMagicBytes || none) continue;
    (void)events.Add(file);
    files.push_back(file);
  }
  EXPECT_TRUE(events.Add(folder.File("last")).complete);
  files.push_back(folder.File("last"));
  // All files together are one history, in which nothing counts twice.
  const Result<CoroutineHistory> history = CoroutineHistory::Read(files);
  ASSERT_TRUE(history) << TextOf(history.error());
  EXPECT_EQ(history->events(), events.Count());
  EXPECT_EQ(history->targets().size(), 1u);
  EXPECT_EQ(history->coroutines().size(), 20u);
  EXPECT_EQ(events.Gaps(), 0u);
  EXPECT_EQ(events.counters["events_lost_ring_full"], 0u);
  // What the rings say that was written is all here.
  EXPECT_EQ(events.Count(), events.counters["events_written_to_rings"]);
  EXPECT_GT(events.Count(), 0u);
}

TEST(CoroutineKill, WhatAKilledHarvesterLeavesIsRemovedByTheNext) {
  const RecordingFolder folder;
  const std::vector<std::string> variables = {"TMPDIR=" + folder.File(""), "XDG_RUNTIME_DIR="};
  const auto left = [&] {
    const std::filesystem::directory_iterator all(folder.File(""));
    return std::distance(begin(all), end(all));
  };
  {
    const SharedWithChildren<Progress> progress;
    TargetProcess harvester(variables, [&] {
      const Result<Harvester> made = Harvester::Create(nullptr);
      progress->ready = true;
      for (;;) pause();
      return 0;
    });
    while (!progress->ready) usleep(1000);
    // One that lives is left alone.
    TargetProcess neighbour(variables, [&] { return Harvester::Create(nullptr) ? 0 : 1; });
    EXPECT_EQ(neighbour.Wait(), 0);
    EXPECT_EQ(left(), 1);
    harvester.Kill();
  }
  EXPECT_EQ(left(), 1);
  TargetProcess next(variables, [&] { return Harvester::Create(nullptr) ? 0 : 1; });
  EXPECT_EQ(next.Wait(), 0);
  EXPECT_EQ(left(), 0);
}

TEST(CoroutineKill, EverythingThatAKilledTargetPublishedIsKept) {
  const int rounds = Rounds(25);
  std::mt19937 random(11);
  for (int round = 0; round < rounds; ++round) {
    const RecordingFolder folder;
    Result<RecordingWriter> writer = RecordingWriter::Create(folder.File("run"));
    ASSERT_TRUE(writer);
    Result<Harvester> harvester = Harvester::Create(&*writer);
    ASSERT_TRUE(harvester);
    const auto environment = harvester->Environment(16);
    ASSERT_TRUE(environment);
    const SharedWithChildren<Progress> progress;
    TargetProcess target(*environment, [&] { return RunUntilStopped(progress.operator->()); });
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::microseconds(2000 + random() % 30'000);
    while (std::chrono::steady_clock::now() < end) ASSERT_TRUE(harvester->Work(5));
    target.Kill();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(harvester->Work(5));
    EXPECT_EQ(harvester->live_targets(), 0u);
    ASSERT_TRUE(harvester->Finish());
    RecordedEvents events;
    EXPECT_TRUE(events.Add(folder.File("run")).complete);
    EXPECT_EQ(events.Gaps(), 0u);
    EXPECT_EQ(events.Count(), events.counters["events_written_to_rings"]);
  }
}

}  // namespace
}  // namespace spanprof::coroutine
