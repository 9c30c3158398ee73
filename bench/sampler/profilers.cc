#include "profilers.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "format/format.h"
#include <spanprof/context.h>

namespace {

std::atomic<uint64_t> empty_samples{0};

struct Off final : Profiler {
  void SwitchOn() override {}
  void SwitchOff() override {}
  uint64_t samples() const override { return 0; }
};

// The floor of everything that samples by a signal: as spanprof asks for its signals, a timer on
// the thread's CPU clock, or a perf event where the interval is shorter than the kernel's tick.
struct Empty final : Profiler {
  explicit Empty(unsigned hertz) : period_ns(1'000'000'000 / hertz) {
    struct sigaction action = {};
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      empty_samples.fetch_add(
          info->si_code == SI_TIMER ? 1 + static_cast<uint64_t>(info->si_overrun) : 1,
          std::memory_order_relaxed);
    };
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGPROF, &action, nullptr);
    timespec tick = {};
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    if (period_ns < tick.tv_nsec) OpenPerf();
    if (fd >= 0) return;
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer);
  }
  void OpenPerf() {
    perf_event_attr attributes = {};
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    attributes.sample_period = static_cast<uint64_t>(period_ns);
    attributes.wakeup_events = 1;
    attributes.disabled = 1;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    fd = static_cast<int>(
        syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (fd < 0) return;
    f_owner_ex owner = {F_OWNER_TID, static_cast<pid_t>(syscall(SYS_gettid))};
    fcntl(fd, F_SETOWN_EX, &owner);
    fcntl(fd, F_SETSIG, SIGPROF);
    fcntl(fd, F_SETFL, O_ASYNC);
  }
  void SwitchOn() override {
    if (fd >= 0) {
      ioctl(fd, PERF_EVENT_IOC_RESET, 0);
      ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
      return;
    }
    const timespec period = {0, period_ns};
    const itimerspec spec = {period, period};
    timer_settime(timer, 0, &spec, nullptr);
  }
  void SwitchOff() override {
    if (fd >= 0) {
      ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
      return;
    }
    const itimerspec none = {};
    timer_settime(timer, 0, &none, nullptr);
  }
  uint64_t samples() const override { return empty_samples; }

  long period_ns;
  timer_t timer = nullptr;
  int fd = -1;
};

// On and off is start and stop: everything that a user pays while it is on, handlers and the
// context's reading, is in the window; what starting and stopping cost is not.
struct Spanprof final : Profiler {
  explicit Spanprof(unsigned hertz)
      : options("cpu=" + std::to_string(1'000'000'000 / hertz) + "ns") {
    spanprof_init("");
    spanprof_context_set_trace(1, 2, 3, 3);
  }
  void SwitchOn() override {
    if (spanprof_start(options.c_str()) != 0) {
      fprintf(stderr, "spanprof_start: %s\n", spanprof_error());
      exit(1);
    }
  }
  void SwitchOff() override {
    spanprof_stop();
    char file[] = "/tmp/spanprof-bench-XXXXXX.otlp";
    close(mkstemps(file, 5));
    if (spanprof_dump(file) != 0) exit(1);
    std::ifstream input(file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(input)), {});
    unlink(file);
    const auto profile = spanprof::format::ReadOtlp(bytes, {});
    if (profile) taken += profile->samples().size();
  }
  uint64_t samples() const override { return taken; }
  std::string options;
  uint64_t taken = 0;
};

struct Gperftools final : Profiler {
  explicit Gperftools(unsigned hertz) {
    // Read when the library is loaded.
    setenv("CPUPROFILE_FREQUENCY", std::to_string(hertz).c_str(), 1);
    setenv("CPUPROFILE_PER_THREAD_TIMERS", "1", 1);
    library = dlopen("libprofiler.so.0", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) return;
    start = reinterpret_cast<int (*)(const char*)>(dlsym(library, "ProfilerStart"));
    stop = reinterpret_cast<void (*)()>(dlsym(library, "ProfilerStop"));
    register_thread = reinterpret_cast<void (*)()>(dlsym(library, "ProfilerRegisterThread"));
    state = reinterpret_cast<void (*)(State*)>(dlsym(library, "ProfilerGetCurrentState"));
    file = "/tmp/spanprof-bench-" + std::to_string(getpid()) + ".prof";
    if (register_thread != nullptr) register_thread();
  }
  ~Gperftools() override { unlink(file.c_str()); }
  void SwitchOn() override { start(file.c_str()); }
  void SwitchOff() override {
    State now = {};
    state(&now);
    gathered += static_cast<uint64_t>(now.samples_gathered);
    stop();
  }
  uint64_t samples() const override { return gathered; }

  struct State {
    int enabled;
    time_t start_time;
    char profile_name[1024];
    int samples_gathered;
  };
  void* library = nullptr;
  int (*start)(const char*) = nullptr;
  void (*stop)() = nullptr;
  void (*register_thread)() = nullptr;
  void (*state)(State*) = nullptr;
  std::string file;
  uint64_t gathered = 0;
};

// `perf record -g` on this process, told to begin and end through its control file.
struct Perf final : Profiler {
  explicit Perf(unsigned hertz) {
    char name[] = "/tmp/spanprof-bench-XXXXXX";
    if (mkdtemp(name) == nullptr) return;
    folder = name;
    mkfifo((folder + "/control").c_str(), 0600);
    mkfifo((folder + "/ack").c_str(), 0600);
    control = open((folder + "/control").c_str(), O_RDWR);
    ack = open((folder + "/ack").c_str(), O_RDWR);
    child = fork();
    if (child == 0) {
      const std::string target = std::to_string(getppid());
      const std::string rate = std::to_string(hertz);
      const std::string fifos = "fifo:" + folder + "/control," + folder + "/ack";
      const std::string output = folder + "/data";
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, STDOUT_FILENO);
      dup2(null, STDERR_FILENO);
      execlp("perf", "perf", "record", "-e", "cpu-clock:u", "-F", rate.c_str(), "-g", "--delay=-1",
             "--control", fifos.c_str(), "-o", output.c_str(), "-p", target.c_str(), nullptr);
      _exit(127);
    }
    works = Tell("disable");  // answers once it is ready
  }
  ~Perf() override {
    if (child > 0) {
      kill(child, SIGINT);
      waitpid(child, nullptr, 0);
    }
    for (const char* name : {"/control", "/ack", "/data"}) unlink((folder + name).c_str());
    rmdir(folder.c_str());
  }
  bool Tell(const char* command) {
    const std::string line = std::string(command) + "\n";
    if (write(control, line.data(), line.size()) < 0) return false;
    std::string answer;
    for (int tries = 0; tries < 5000; ++tries) {
      char byte = 0;
      const int flags = fcntl(ack, F_GETFL);
      fcntl(ack, F_SETFL, flags | O_NONBLOCK);
      if (read(ack, &byte, 1) == 1) {
        answer += byte;
        if (byte == '\n') return true;
        continue;
      }
      if (waitpid(child, nullptr, WNOHANG) != 0) {
        child = -1;
        return false;
      }
      usleep(1000);
    }
    return false;
  }
  void SwitchOn() override { Tell("enable"); }
  void SwitchOff() override { Tell("disable"); }
  uint64_t samples() const override { return 0; }

  std::string folder;
  int control = -1, ack = -1;
  pid_t child = -1;
  bool works = false;
};

}  // namespace

std::unique_ptr<Profiler> MakeProfiler(const std::string& name, unsigned hertz, std::string& why) {
  if (name == "off") return std::make_unique<Off>();
  if (name == "empty") return std::make_unique<Empty>(hertz);
  if (name == "spanprof") return std::make_unique<Spanprof>(hertz);
  if (name == "gperftools") {
    auto profiler = std::make_unique<Gperftools>(hertz);
    if (profiler->start != nullptr) return profiler;
    why = "libprofiler.so.0 is not installed (Debian: libgoogle-perftools-dev)";
  } else if (name == "perf") {
    auto profiler = std::make_unique<Perf>(hertz);
    if (profiler->works) return profiler;
    why =
        "perf record does not run here (Debian: linux-perf; /proc/sys/kernel/perf_event_paranoid)";
  } else {
    why = "unknown profiler";
  }
  return nullptr;
}
