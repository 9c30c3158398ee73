// The program itself: runs every scenario again and again until the time is over, then says how
// often each ran and whether anything was wrong.
//
//   hostile_neighbour --plugin FILE --seconds 20 [--storage otel] [--profile FOLDER]
//
// --profile: a thread starts, dumps and stops recordings of this process all the while, into files
// in FOLDER. Without it, whatever profiles the program is none of its business.
//
// hostile_stranger is the same program without libspanprof, as most that are profiled are: it has
// no spans, and the preloaded library is the only one there.

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <map>
#include <mutex>
#include <pthread.h>
#include <signal.h>
#include <string>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

#include "scenario.h"
#include <spanprof/context.h>

namespace spanprof::hostile {
namespace {

std::atomic<uint64_t> failures{0};
std::atomic<bool> profiles_itself{false};
std::atomic<bool> stop{false};
std::string own_path;
std::string plugin_path;
std::mutex counts_lock;
std::map<std::string, uint64_t> counts;
thread_local const char* scenario_name = "";

uint64_t ThreadCpuNanoseconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

void RunOnce(const Scenario* scenarios) {
  for (const Scenario* scenario = scenarios; scenario->run != nullptr; ++scenario) {
    scenario_name = scenario->name;
    scenario->run();
    const std::lock_guard<std::mutex> lock(counts_lock);
    ++counts[scenario->name];
  }
}

void RunUntilStop(const Scenario* scenarios) {
  if (scenarios->run == nullptr) return;
  do {
    RunOnce(scenarios);
  } while (!stop);
}

#if defined(SPANPROF_HOSTILE_STRANGER)
bool InitSpans(const std::string&) { return true; }
void ProfileThisProcess(const std::string&) {}
#else
bool InitSpans(const std::string& storage) {
  if (spanprof_init(("ctxstorage=" + storage + ",attributes=neighbour").c_str()) == 0) return true;
  fprintf(stderr, "spanprof_init: %s\n", spanprof_error());
  return false;
}

// Recordings, one after the other, with everything that can be asked of them.
void ProfileThisProcess(const std::string& folder) {
  for (uint64_t i = 0; !stop; ++i) {
    const char* const how = i % 3 == 0   ? "cpu=1ms,wall=2ms"
                            : i % 3 == 1 ? "cpu=11ms,wall=5ms"
                                         : "cpu=1ms";
    const std::string file = folder + (i % 2 == 0 ? "/recorded.jfr" : "/recorded.pb.gz");
    const int started = spanprof_start((std::string(how) + ",fork=quiet,file=" + file).c_str());
    Expect(started == 0, spanprof_error(), started, 0);
    for (int k = 0; k < 4; ++k) {
      timespec moment = {0, 40'000'000};
      while (nanosleep(&moment, &moment) != 0) {
      }
      const int dumped = spanprof_dump((folder + "/dumped.pb.gz").c_str());
      Expect(dumped == 0, spanprof_error(), dumped, 0);
    }
    const int stopped = spanprof_stop();
    Expect(stopped == 0, spanprof_error(), stopped, 0);
    const std::lock_guard<std::mutex> lock(counts_lock);
    ++counts["records itself"];
  }
}
#endif

// Where it was that the program came to an end, which no debugger may be there to say.
void ShowStack(int signal) {
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  ::signal(signal, SIG_DFL);
  raise(signal);
}

int Run(double seconds, const std::string& storage, const std::string& profile_folder) {
  // What the shell that started us left is not what the scenarios are about.
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPROF, SIGURG, SIGPIPE}) {
    ::signal(signal, SIG_DFL);
  }
  for (const int signal : {SIGABRT, SIGBUS, SIGILL, SIGFPE}) ::signal(signal, ShowStack);
  // For the one thread that opens it.
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
  if (!InitSpans(storage)) return 2;
  std::vector<std::thread> threads;
  for (const Scenario* scenarios : {kControlFlow, kThreads, kChildren, kPlugins, kWork, kSpans}) {
    threads.emplace_back(RunUntilStop, scenarios);
  }
  if (!profile_folder.empty()) threads.emplace_back(ProfileThisProcess, profile_folder);
  const uint64_t end = MonotonicNanoseconds() + static_cast<uint64_t>(seconds * 1e9);
  do {
    RunOnce(kOwnSignals);
    RunOnce(kWaiting);
  } while (MonotonicNanoseconds() < end);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const auto& [name, count] : counts) printf("%8" PRIu64 " times: %s\n", count, name.c_str());
  printf("%" PRIu64 " wrong results\n", failures.load());
  return failures == 0 ? 0 : 1;
}

}  // namespace

void Expect(bool right, const char* what, int64_t seen, int64_t wanted) {
  if (right) return;
  if (failures.fetch_add(1) > 50) return;
  fprintf(stderr, "WRONG in \"%s\": %s: %" PRId64 ", and not %" PRId64 "\n", scenario_name, what,
          seen, wanted);
}

bool SignalUrgentIsOurs() { return !profiles_itself; }
const std::string& OwnPath() { return own_path; }
const std::string& PluginPath() { return plugin_path; }

uint64_t MonotonicNanoseconds() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

void Burn(unsigned microseconds) {
  const uint64_t end = ThreadCpuNanoseconds() + uint64_t{microseconds} * 1000;
  volatile unsigned work = 0;
  while (ThreadCpuNanoseconds() < end) {
    for (unsigned i = 0; i < 200; ++i) work = work + i;
  }
}

bool WaitUntil(bool (*done)(void*), void* argument) {
  const uint64_t end = MonotonicNanoseconds() + 10'000'000'000u;
  while (!done(argument)) {
    if (MonotonicNanoseconds() > end) return false;
    sched_yield();
  }
  return true;
}

int RunAsChild(int number) {
  Burn(number % 3 == 0 ? 200 : 2000);
  uint64_t sum = 0;
  for (uint64_t i = 1; i <= 1000; ++i) sum += i;
  void* const memory = malloc(10'000);
  memset(memory, 1, 10'000);
  free(memory);
  return sum == 500'500 ? number : 99;
}

}  // namespace spanprof::hostile

int main(int argc, char** argv) {
  using namespace spanprof::hostile;  // NOLINT(google-build-using-namespace)
  double seconds = 10;
  std::string storage = "profiler";
  std::string profile_folder;
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0) return 2;
  own_path = self;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--child") return RunAsChild(atoi(argv[i + 1]));
    if (option == "--seconds") seconds = atof(argv[i + 1]);
    if (option == "--storage") storage = argv[i + 1];
    if (option == "--plugin") plugin_path = argv[i + 1];
    if (option == "--profile") profile_folder = argv[i + 1];
  }
  profiles_itself = !profile_folder.empty();
  return Run(seconds, storage, profile_folder);
}
