// From the event to the file, across processes.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <new>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/unique_fd.h"
#include "bench/coroutine/measured_jobs.h"
#include "coroutine/harvester.h"

namespace spanprof::bench {
namespace {

using coroutine::Harvester;
using coroutine::RecordingWriter;

struct Shared {
  std::atomic<bool> ready{false};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> events{0};
  std::atomic<double> seconds{0};
  std::atomic<double> cost{0};
};

Shared* MakeShared() {
  return new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                   0)) Shared();
}

pid_t Fork(const std::vector<std::string>& environment, const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const std::string& variable : environment) {
    const std::size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  body();
  _exit(0);
}

std::string TemporaryFile() {
  const char* folder = getenv("TMPDIR");
  std::string name = std::string(folder == nullptr ? "/tmp" : folder) + "/coroutine-bench-XXXXXX";
  const int file = mkstemp(name.data());
  if (file < 0) std::abort();
  close(file);
  unlink(name.c_str());  // the recording makes it anew, and takes no existing file
  return name;
}

// Emits at a rate, in bursts of a hundred microseconds' worth.
void EmitAtRate(Shared* shared, double seconds, double rate, uint32_t count) {
  const auto jobs = MakeJobs<traced_promise>(count);
  uint64_t resumes = 0;
  std::size_t next = 0;
  const double begin = NanosecondsOf(CLOCK_MONOTONIC);
  const double cpu = NanosecondsOf(CLOCK_THREAD_CPUTIME_ID);
  double now = begin;
  while (now - begin < seconds * 1e9) {
    const double due = rate > 0 ? (now - begin) * 1e-9 * rate / 2 : 1e300;
    for (int i = 0; i < 1000 && static_cast<double>(resumes) < due; ++i, ++resumes) {
      jobs[next].Resume();
      if (++next == jobs.size()) next = 0;
    }
    now = NanosecondsOf(CLOCK_MONOTONIC);
  }
  shared->events = 2 * resumes;
  shared->seconds = (NanosecondsOf(CLOCK_MONOTONIC) - begin) * 1e-9;
  shared->cost = (NanosecondsOf(CLOCK_THREAD_CPUTIME_ID) - cpu) / static_cast<double>(2 * resumes);
}

bool HasEnded(pid_t pid) { return waitpid(pid, nullptr, WNOHANG) == pid; }

}  // namespace

HarvestFigures HarvestAtRate(double seconds, double events_per_second, uint32_t jobs) {
  const std::string file = TemporaryFile();
  Shared* shared = MakeShared();
  HarvestFigures figures;
  {
    Result<RecordingWriter> writer = RecordingWriter::Create(file);
    Result<Harvester> harvester = Harvester::Create(&*writer);
    const auto environment = harvester->Environment(16);
    const pid_t target =
        Fork(*environment, [&] { EmitAtRate(shared, seconds, events_per_second, jobs); });
    const int niceness = getpriority(PRIO_PROCESS, 0);
    Harvester::RaisePriority();  // as the command does
    while (!HasEnded(target)) (void)harvester->Work();
    (void)harvester->Finish();
    setpriority(PRIO_PROCESS, 0, niceness);
    const coroutine::HarvestTotals totals = harvester->Totals();
    const double all = static_cast<double>(totals.received + totals.lost);
    figures.events_per_second = static_cast<double>(totals.received) / shared->seconds;
    figures.lost_percent = all > 0 ? 100.0 * static_cast<double>(totals.lost) / all : 0;
    figures.bytes_per_event =
        static_cast<double>(writer->bytes()) / static_cast<double>(totals.received + 1);
  }
  unlink(file.c_str());
  munmap(shared, sizeof *shared);
  return figures;
}

double HarvestedEventCost(uint32_t jobs) {
  const std::string file = TemporaryFile();
  Shared* shared = MakeShared();
  {
    Result<RecordingWriter> writer = RecordingWriter::Create(file);
    Result<Harvester> harvester = Harvester::Create(&*writer);
    const auto environment = harvester->Environment(16);
    const pid_t target = Fork(*environment, [&] {
      double best = 1e9;
      for (int i = 0; i < 10; ++i) best = std::min(best, ProbedResume(jobs));
      shared->cost = best;
    });
    while (!HasEnded(target)) (void)harvester->Work();
    (void)harvester->Finish();
  }
  const double cost = shared->cost;
  unlink(file.c_str());
  munmap(shared, sizeof *shared);
  return cost;
}

double ForeignEventCost(uint32_t jobs) {
  const std::string file = TemporaryFile();
  const UniqueFd area(open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const auto header = std::make_unique<internal::coroutine::GlobalHeader>();
  header->magic_number = internal::coroutine::kMagic;
  header->version = internal::coroutine::kVersion;
  constexpr int kTries = 10;
  // Stations of foreign harvesters are used once.
  const uint32_t stations = kTries * jobs;
  header->max_stations = stations;
  const auto bytes = static_cast<off_t>((uint64_t{stations} + 1) * sizeof *header);
  if (!area.valid() || ftruncate(area.get(), bytes) != 0 ||
      pwrite(area.get(), header.get(), sizeof *header, 0) != sizeof *header) {
    std::abort();
  }
  Shared* shared = MakeShared();
  const pid_t target = Fork({"CTP_SHM_PATH=" + file}, [&] {
    double best = 1e9;
    for (int i = 0; i < kTries; ++i) best = std::min(best, ProbedResume(jobs));
    shared->cost = best;
    if (internal::coroutine::process.header.load()->allocated_count > stations) std::abort();
  });
  waitpid(target, nullptr, 0);
  const double cost = shared->cost;
  unlink(file.c_str());
  munmap(shared, sizeof *shared);
  return cost;
}

Latencies EventToFile(uint32_t pause_microseconds, int events) {
  const std::string file = TemporaryFile();
  Shared* shared = MakeShared();
  const auto jobs = MakeJobs<traced_promise>(1);  // its events are ours, in this process
  const pid_t target = getpid();
  const pid_t recorder = Fork({}, [&] {
    Result<RecordingWriter> writer = RecordingWriter::Create(file);
    Result<Harvester> harvester = Harvester::Create(&*writer);
    if (!harvester || !harvester->AttachProcess(target)) _exit(1);
    Harvester::RaisePriority();
    shared->ready = true;
    while (!shared->stop) (void)harvester->Work();
    (void)harvester->Finish();
  });
  while (!shared->ready && !HasEnded(recorder)) usleep(1000);
  const UniqueFd reader(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const auto size = [&] {
    struct stat status = {};
    return fstat(reader.get(), &status) == 0 ? status.st_size : 0;
  };
  jobs[0].Resume();  // is adopted
  std::vector<double> latencies;
  for (int i = 0; i < events; ++i) {
    usleep(pause_microseconds);
    const off_t before = size();
    const double begin = NanosecondsOf(CLOCK_MONOTONIC);
    jobs[0].Resume();
    while (size() == before && NanosecondsOf(CLOCK_MONOTONIC) - begin < 1e9) {
    }
    latencies.push_back((NanosecondsOf(CLOCK_MONOTONIC) - begin) / 1000);
  }
  shared->stop = true;
  waitpid(recorder, nullptr, 0);
  unlink(file.c_str());
  munmap(shared, sizeof *shared);
  std::sort(latencies.begin(), latencies.end());
  return {latencies[latencies.size() / 2], latencies[latencies.size() * 99 / 100]};
}

WakeFigures IdleAndWake(uint32_t stations) {
  constexpr int kWakes = 50;
  WakeFigures figures;
  Shared* shared = MakeShared();
  Result<Harvester> harvester = Harvester::Create(nullptr);
  const auto environment = harvester->Environment(16);
  const pid_t target = Fork(*environment, [&] {
    const auto jobs = MakeJobs<traced_promise>(stations);
    for (const auto& job : jobs) job.Resume();
    shared->ready = true;
    while (!shared->stop) usleep(1000);
    double total = 0;
    for (int i = 0; i < kWakes; ++i) {
      usleep(60'000);  // the harvester is asleep by then
      const double begin = NanosecondsOf(CLOCK_MONOTONIC);
      jobs[0].Resume();
      total += NanosecondsOf(CLOCK_MONOTONIC) - begin;
    }
    shared->cost = total / kWakes / 1000;
  });
  while (!shared->ready) (void)harvester->Work();
  for (int i = 0; i < 50; ++i) (void)harvester->Work();
  const double wall = NanosecondsOf(CLOCK_MONOTONIC);
  const double cpu = NanosecondsOf(CLOCK_PROCESS_CPUTIME_ID);
  while (NanosecondsOf(CLOCK_MONOTONIC) - wall < 3e9) (void)harvester->Work();
  figures.idle_percent = 100 * (NanosecondsOf(CLOCK_PROCESS_CPUTIME_ID) - cpu) /
                         (NanosecondsOf(CLOCK_MONOTONIC) - wall);
  shared->stop = true;
  while (!HasEnded(target)) (void)harvester->Work();
  figures.waker_microseconds = shared->cost;
  (void)harvester->Finish();
  munmap(shared, sizeof *shared);
  return figures;
}

}  // namespace spanprof::bench
