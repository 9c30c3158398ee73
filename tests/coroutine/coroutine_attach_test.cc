// Joining a process that runs already, being woken by it, several at once, and processes that are
// not what they seem.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "coroutine/harvester.h"
#include "tests/coroutine/recorded_events.h"
#include "tests/coroutine/scheduled_job.h"
#include "tests/coroutine/target_process.h"

namespace spanprof::coroutine {
namespace {

struct Steps {
  std::atomic<int> asked{0};
  std::atomic<int> done{0};
};

void WaitFor(const std::atomic<int>& step, int value) {
  while (step < value) usleep(500);
}

// Two jobs, born at once, and resumed once for each step that is asked for.
int ResumeOnDemand(Steps* steps) {
  bool stop = false;
  const Job one = Looping(stop);
  const Job two = Looping(stop);
  steps->done = 1;
  for (int step = 1; step < 100; ++step) {
    WaitFor(steps->asked, step);
    one.Resume();
    two.Resume();
    steps->done = step + 1;
  }
  return 0;
}

TEST(CoroutineAttach, CoroutinesBornBeforeAppearAtTheirNextResume) {
  const RecordingFolder folder;
  const SharedWithChildren<Steps> steps;
  TargetProcess target({}, [&] { return ResumeOnDemand(steps.operator->()); });
  WaitFor(steps->done, 1);
  steps->asked = 1;
  WaitFor(steps->done, 2);  // one round that nobody sees
  Result<RecordingWriter> writer = RecordingWriter::Create(folder.File("run"));
  ASSERT_TRUE(writer);
  Result<Harvester> harvester = Harvester::Create(&*writer);
  ASSERT_TRUE(harvester);
  const Result<void> attached = harvester->AttachProcess(target.pid());
  ASSERT_TRUE(attached) << TextOf(attached.error());
  steps->asked = 2;
  WaitFor(steps->done, 3);
  ASSERT_TRUE(harvester->Finish());
  steps->asked = 3;  // tracing is off again
  WaitFor(steps->done, 4);
  RecordedEvents events;
  EXPECT_TRUE(events.Add(folder.File("run")).complete);
  // Each: adopted, resume, suspend.
  EXPECT_EQ(events.Count(), 6u);
  EXPECT_EQ(events.counters["coroutines_adopted"], 2u);
  ASSERT_EQ(events.targets.size(), 1u);
  EXPECT_EQ(events.targets[0].pid, static_cast<uint32_t>(target.pid()));
}

TEST(CoroutineAttach, ASleepingHarvesterIsWokenByAnEvent) {
  const SharedWithChildren<Steps> steps;
  TargetProcess target({}, [&] { return ResumeOnDemand(steps.operator->()); });
  WaitFor(steps->done, 1);
  Result<Harvester> harvester = Harvester::Create(nullptr);
  ASSERT_TRUE(harvester);
  ASSERT_TRUE(harvester->AttachProcess(target.pid()));
  constexpr int kForEver = -1;  // without a wake this test does not end
  for (int round = 1; round <= 20; ++round) {
    const uint64_t sleeps = harvester->sleeps();
    // The event comes when the harvester sleeps, or on its way there.
    TargetProcess later({}, [&] {
      usleep(20'000 + 1000 * static_cast<unsigned>(round % 7));
      steps->asked = round;
      return 0;
    });
    const uint64_t before = harvester->Totals().received;
    while (harvester->Totals().received == before) ASSERT_TRUE(harvester->Work(kForEver));
    EXPECT_GE(harvester->sleeps(), sleeps);
    EXPECT_EQ(later.Wait(), 0);
  }
  EXPECT_GT(harvester->sleeps(), 0u);
}

TEST(CoroutineAttach, SeveralTargetsAreRecordedAtOnceAndToldApart) {
  const RecordingFolder folder;
  Result<RecordingWriter> writer = RecordingWriter::Create(folder.File("run"));
  ASSERT_TRUE(writer);
  Result<Harvester> harvester = Harvester::Create(&*writer);
  ASSERT_TRUE(harvester);
  const auto environment = harvester->Environment(16);
  ASSERT_TRUE(environment);
  const auto run = [] {
    for (int i = 0; i < 1000; ++i) {
      const Job job = Short();
      job.Resume();
    }
    return 0;
  };
  TargetProcess one(*environment, run);
  TargetProcess two(*environment, [&run] {
    run();
    // A forked child has coroutines of its own.
    const pid_t child = fork();
    if (child == 0) _exit(run());
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  });
  while (!one.HasEnded() || !two.HasEnded()) ASSERT_TRUE(harvester->Work(5));
  ASSERT_TRUE(harvester->Finish());
  RecordedEvents events;
  EXPECT_TRUE(events.Add(folder.File("run")).complete);
  EXPECT_EQ(events.targets.size(), 3u);
  EXPECT_EQ(events.Count(), 3u * 4000u);
}

TEST(CoroutineAttach, OnlyOneHarvesterAtATime) {
  const SharedWithChildren<Steps> steps;
  TargetProcess target({}, [&] { return ResumeOnDemand(steps.operator->()); });
  WaitFor(steps->done, 1);
  Result<Harvester> first = Harvester::Create(nullptr);
  Result<Harvester> second = Harvester::Create(nullptr);
  ASSERT_TRUE(first->AttachProcess(target.pid()));
  const Result<void> refused = second->AttachProcess(target.pid());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, EBUSY);
  ASSERT_TRUE(first->Finish());
  EXPECT_TRUE(second->AttachProcess(target.pid()));
}

TEST(CoroutineAttach, AProcessWithoutTracedCoroutinesSaysSo) {
  TargetProcess target({}, [] { return pause(); });
  Result<Harvester> harvester = Harvester::Create(nullptr);
  const Result<void> attached = harvester->AttachProcess(target.pid());
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code, ENOENT);
  EXPECT_FALSE(attached.error().hint.empty());
}

// Memory of the right name with anything in it.
TEST(CoroutineAttach, HostileMemoryIsRefusedOrHarmless) {
  namespace wire = internal::coroutine;
  const auto lying = [](int file, wire::GlobalHeader& header) {
    (void)file;
    header.ring_count = 0xFFFFFFFF;
    header.allocated_count = 0xFFFFFFFF;
    header.max_stations = 0xFFFFFFFF;
    header.place_count = 0xFFFFFFFF;
    header.free_stations = ~uint64_t{0};
  };
  struct Case {
    const char* what;
    bool sealed;
    bool accepted;
    void (*change)(wire::GlobalHeader&);
  };
  const Case cases[] = {
      {"nothing wrong", true, true, [](wire::GlobalHeader&) {}},
      {"not sealed", false, false, [](wire::GlobalHeader&) {}},
      {"another magic", true, false, [](wire::GlobalHeader& header) { header.magic_number = 1; }},
      {"no records", true, false, [](wire::GlobalHeader& header) { header.ring_records = 0; }},
      {"odd records", true, false, [](wire::GlobalHeader& header) { header.ring_records = 1000; }},
      {"rings elsewhere", true, false, [](wire::GlobalHeader& header) { header.rings_offset = 8; }},
  };
  for (const Case& each : cases) {
    const UniqueFd file(memfd_create(wire::kAreaName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(file.get(), 4096), 0);
    auto* header = static_cast<wire::GlobalHeader*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
    header->magic_number = wire::kMagic;
    header->extension_magic = wire::kExtensionMagic;
    header->extension_version = wire::kExtensionVersion;
    header->pid = static_cast<uint32_t>(getpid());
    header->rings_offset = wire::kRingsOffset;
    header->places_offset = wire::kPlacesOffset;
    header->ring_records = 1024;
    lying(file.get(), *header);
    each.change(*header);
    if (each.sealed) {
      ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    }
    Result<TargetArea> area = TargetArea::Open(UniqueFd(dup(file.get())));
    EXPECT_EQ(area.has_value(), each.accepted) << each.what;
    if (area) {
      HarvestedTarget target(*std::move(area), 1, nullptr);
      EXPECT_TRUE(target.Begin());
      EXPECT_TRUE(target.Pass());
      EXPECT_EQ(target.Totals().received, 0u);
    }
    munmap(header, 4096);
  }
}

TEST(CoroutineAttach, TheHarvestersFolderIsPrivateAndGoesAway) {
  std::string socket;
  {
    Result<Harvester> harvester = Harvester::Create(nullptr);
    ASSERT_TRUE(harvester);
    ASSERT_TRUE(harvester->Environment(16));
    socket = harvester->socket_path();
    struct stat status = {};
    ASSERT_EQ(lstat(socket.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    const std::string folder = socket.substr(0, socket.rfind('/'));
    ASSERT_EQ(lstat(folder.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    ASSERT_EQ(lstat((folder + "/stations").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
  }
  EXPECT_FALSE(std::filesystem::exists(socket.substr(0, socket.rfind('/'))));
}

// A harvester that is not ours makes the file, and our probe writes station slots into it.
TEST(CoroutineAttach, AForeignHarvesterGetsItsEventsInStations) {
  namespace wire = internal::coroutine;
  const RecordingFolder folder;
  const std::string path = folder.File("corotracer.shm");
  {
    const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    ASSERT_EQ(ftruncate(file.get(), 1024 + 4 * 1024), 0);
    const uint64_t magic = wire::kMagic;
    const uint32_t version = 1;
    const uint32_t stations = 4;
    ASSERT_EQ(pwrite(file.get(), &magic, 8, 0), 8);
    ASSERT_EQ(pwrite(file.get(), &version, 4, 8), 4);
    ASSERT_EQ(pwrite(file.get(), &stations, 4, 12), 4);
  }
  const SharedWithChildren<Steps> steps;
  TargetProcess target({"CTP_SHM_PATH=" + path}, [&] {
    bool stop = false;
    std::vector<Job> jobs;
    for (int i = 0; i < 6; ++i) jobs.push_back(Looping(stop));
    steps->done = 1;
    for (int step = 1; step <= 5; ++step) {
      WaitFor(steps->asked, step);
      for (const Job& job : jobs) job.Resume();
      steps->done = step + 1;
    }
    return 0;
  });
  ForeignStations reader(UniqueFd(open(path.c_str(), O_RDWR | O_CLOEXEC)), 0);
  std::vector<SlotEventInfo> events;
  for (int step = 1; step <= 5; ++step) {
    steps->asked = step;
    WaitFor(steps->done, step + 1);
    reader.Harvest(events);
  }
  EXPECT_EQ(target.Wait(), 0);
  reader.Harvest(events);
  EXPECT_EQ(events.size(), 4u * 10u);  // four of the six have a station
  EXPECT_EQ(reader.untraced(), 2u);
  EXPECT_EQ(reader.dead(), 4u);
  bool active = true;
  uint64_t time = 0;
  for (const SlotEventInfo& event : events) {
    if (event.station != 0) continue;
    EXPECT_EQ(event.active, active);
    EXPECT_EQ(event.tid, static_cast<uint64_t>(target.pid()));
    EXPECT_GE(event.nanoseconds, time);
    time = event.nanoseconds;
    active = !active;
  }
}

}  // namespace
}  // namespace spanprof::coroutine
