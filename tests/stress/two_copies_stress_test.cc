// Two copies of the library in one process, as two runtimes bring them: they are one.

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <pthread.h>
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
#include <spanprof/context.h>

namespace spanprof::stress {
namespace {

constexpr char kOptions[] = "ctxstorage=otel,attributes=a0;a1,log=none";

struct Copy {
  explicit Copy(const std::string& path)
      : handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)),
        init(Find<decltype(init)>("spanprof_init")),
        set(Find<decltype(set)>("spanprof_context_set")),
        set_trace(Find<decltype(set_trace)>("spanprof_context_set_trace")),
        set_tag(Find<decltype(set_tag)>("spanprof_context_set_tag")),
        get(Find<decltype(get)>("spanprof_context_get")),
        get_by_tid(Find<decltype(get_by_tid)>("spanprof_context_get_by_tid")),
        intern(Find<decltype(intern)>("spanprof_intern")),
        counter_name(Find<decltype(counter_name)>("spanprof_counter_name")),
        counter_value(Find<decltype(counter_value)>("spanprof_counter_value")) {}

  template <class Function>
  Function Find(const char* name) const {
    return handle == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(handle, name));
  }
  spanprof_context Get() const {
    spanprof_context seen = {};
    seen.size = sizeof seen;
    if (get(&seen) != 0) seen.span_id = ~uint64_t{0};
    return seen;
  }
  uint64_t Counter(const char* name) const {
    for (unsigned i = 0; counter_name(i) != nullptr; ++i) {
      if (strcmp(counter_name(i), name) == 0) return counter_value(i);
    }
    return ~uint64_t{0};
  }

  void* handle;
  decltype(&spanprof_init) init;
  decltype(&spanprof_context_set) set;
  decltype(&spanprof_context_set_trace) set_trace;
  decltype(&spanprof_context_set_tag) set_tag;
  decltype(&spanprof_context_get) get;
  decltype(&spanprof_context_get_by_tid) get_by_tid;
  decltype(&spanprof_intern) intern;
  decltype(&spanprof_counter_name) counter_name;
  decltype(&spanprof_counter_value) counter_value;
};

// The other copy's file: the same bytes under another name, which the loader takes for another
// library.
class OtherFile {
 public:
  OtherFile() {
    char name[] = "/tmp/spanprof-copy-XXXXXX";
    close(mkstemp(name));
    path_ = name;
    std::filesystem::copy_file(SPANPROF_STRESS_LIBRARY, path_,
                               std::filesystem::copy_options::overwrite_existing);
  }
  ~OtherFile() { unlink(path_.c_str()); }
  OtherFile(const OtherFile&) = delete;
  OtherFile& operator=(const OtherFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Both ways, by every path, on the calling thread. The number of what went wrong, 0 if nothing.
unsigned SetThroughOneReadThroughOther(const Copy& one, const Copy& other, uint64_t number) {
  unsigned wrong = 0;
  one.set(number, number + 1);
  wrong += other.Get().span_id != number || other.Get().root_span_id != number + 1;
  other.set_trace(number + 2, number + 3, number + 4, number + 5);
  const spanprof_context seen = one.Get();
  wrong += seen.trace_id_high != number + 2 || seen.trace_id_low != number + 3;
  wrong += seen.span_id != number + 4 || seen.root_span_id != number + 5;
  one.set_tag(0, "north", 5);
  wrong += other.Get().tags[0] != other.intern("north", 5) || other.Get().tags[0] == 0;
  other.set(number + 6, number + 7);
  wrong += one.Get().span_id != number + 6 || one.Get().trace_id_high != 0;
  spanprof_context by_tid = {};
  by_tid.size = sizeof by_tid;
  wrong += other.get_by_tid(CurrentTid(), &by_tid) != 0 || by_tid.span_id != number + 6;
  return wrong;
}

unsigned WrongMappings() {
  return (CountMappings(getpid(), "DD_OTEL_CTX") != 1) +
         (CountMappings(getpid(), "OTEL_CTX") != 1) +
         (CountMappings(getpid(), "SPANPROF_CORE") != 1);
}

const Copy* late_copy = nullptr;

void SetLate(void*) {
  late_copy->set(1, 1);
  if (late_copy->Get().span_id == 1) abort();
}

// A program without a dynamic loader, as musl's are by default, cannot have two copies.
bool CannotLoad() {
  if (void* loaded = dlopen(SPANPROF_STRESS_LIBRARY, RTLD_NOW | RTLD_LOCAL)) {
    dlclose(loaded);
    return false;
  }
  const char* error = dlerror();
  return error != nullptr && strstr(error, "not supported") != nullptr;
}
#define SPANPROF_SKIP_WITHOUT_LOADER() \
  if (CannotLoad()) GTEST_SKIP() << "this program is static: it cannot load a library"

class TwoCopiesStress : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(TwoCopiesStress, AreOneCore) {
  SPANPROF_SKIP_WITHOUT_LOADER();
  const auto [original_loaded_first, original_started_first] = GetParam();
  const OtherFile file;
  const Copy first(original_loaded_first ? SPANPROF_STRESS_LIBRARY : file.path());
  ASSERT_NE(first.handle, nullptr) << dlerror();
  const Copy second(original_loaded_first ? file.path() : SPANPROF_STRESS_LIBRARY);
  ASSERT_NE(second.handle, nullptr) << dlerror();
  ASSERT_NE(reinterpret_cast<void*>(first.set), reinterpret_cast<void*>(second.set));
  const Copy& active = original_started_first == original_loaded_first ? first : second;
  const Copy& forwarding = &active == &first ? second : first;
  ASSERT_EQ(active.init(kOptions), 0);
  ASSERT_EQ(forwarding.init(kOptions), 0);
  EXPECT_EQ(forwarding.init("ctxstorage=profiler"), -EBUSY);
  EXPECT_EQ(WrongMappings(), 0u);
  pthread_key_t key;
  ASSERT_EQ(pthread_key_create(&key, &SetLate), 0);
  late_copy = &forwarding;

  std::atomic<unsigned> wrong{0};
  uint64_t threads = 0, forks = 0;
  const StressRun run;
  while (!run.Done(threads >= kEnoughSignals && forks >= 10)) {
    // New threads, whose first call goes through either copy, and which leave.
    for (uint64_t i = 0; i < 10; ++i, ++threads) {
      std::thread([&, i] {
        pthread_setspecific(key, &key);
        const Copy& one = i % 2 == 0 ? active : forwarding;
        const Copy& other = i % 2 == 0 ? forwarding : active;
        for (uint64_t n = 1; n < 100; ++n) wrong += SetThroughOneReadThroughOther(one, other, n);
      }).join();
    }
    wrong += SetThroughOneReadThroughOther(forwarding, active, threads + 1);
    if (kThreadSanitizer) {
      forks = 10;  // it supports no fork once there have been threads
      continue;
    }
    const uint64_t span = active.Get().span_id;
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(20);
      unsigned found = forwarding.Get().span_id != span || active.Get().span_id != span;
      found += SetThroughOneReadThroughOther(forwarding, active, 1000);
      found += SetThroughOneReadThroughOther(active, forwarding, 2000);
      OutsideReader reader(getpid());
      OutsideContext seen;
      found += reader.Read(CurrentTid(), &seen) != OutsideStatus::kAccepted;
      _exit(static_cast<int>(found + WrongMappings()));
    }
    std::string problem;
    if (const int status = WaitForChild(pid, 25, &problem); status != 0) {
      ADD_FAILURE() << "a forked child: " << status << " wrong, " << problem;
      break;
    }
    ++forks;
  }
  run.ReportRate("threads", threads);
  run.ReportRate("forks", forks);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(WrongMappings(), 0u);
  EXPECT_GE(active.Counter("exiting_thread_refused"), threads);
  EXPECT_EQ(active.Counter("exiting_thread_refused"), forwarding.Counter("exiting_thread_refused"));
  EXPECT_EQ(active.Counter("thread_not_attached"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Orders, TwoCopiesStress,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param) ? "Original" : "Copy") +
                                  "Loaded" + (std::get<1>(parameter.param) ? "Original" : "Copy") +
                                  "Started";
                         });

// Each round is a process: an election is for a process's life.
TEST(TwoCopiesElectionStress, ElectsOneCoreWhenBothStartAtOnce) {
  if (kThreadSanitizer) {
    GTEST_SKIP() << "a file lock orders the copies, which the thread sanitizer does not know";
  }
  SPANPROF_SKIP_WITHOUT_LOADER();
  const OtherFile file;
  uint64_t rounds = 0;
  const StressRun run;
  while (!run.Done(rounds >= 20)) {
    ChildProcess child([&file]() -> int {
      const Copy first(SPANPROF_STRESS_LIBRARY), second(file.path());
      if (first.handle == nullptr || second.handle == nullptr) return 100;
      std::atomic<unsigned> waiting{0}, failed{0};
      const auto start = [&](const Copy& copy) {
        ++waiting;
        while (waiting < 2) {
        }
        failed += copy.init(kOptions) != 0;
      };
      std::thread other([&] { start(second); });
      start(first);
      other.join();
      return static_cast<int>(failed + WrongMappings() +
                              SetThroughOneReadThroughOther(first, second, 10));
    });
    ASSERT_EQ(child.Wait(), 0) << child.problem();
    ++rounds;
  }
  run.ReportRate("elections", rounds);
}

// As if a copy of another interface version were active: its announcement is a page of that name.
TEST(TwoCopiesVersionStress, RefusesACoreOfAnotherVersion) {
  SPANPROF_SKIP_WITHOUT_LOADER();
  struct Announcement {
    char magic[16];
    uint32_t version, pid;
    const void* core;
  };
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "SPANPROF_CORE", 0u));
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, sizeof(Announcement)), 0);
  auto* announcement = static_cast<Announcement*>(
      mmap(nullptr, sizeof(Announcement), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
  ASSERT_NE(announcement, MAP_FAILED);
  close(fd);
  *announcement = {"SPANPROF_CORE", 0x7FFF0001, static_cast<uint32_t>(getpid()), nullptr};

  const Copy copy(SPANPROF_STRESS_LIBRARY);
  ASSERT_NE(copy.handle, nullptr) << dlerror();
  EXPECT_EQ(copy.init(kOptions), -EPROTO);
  const auto error = copy.Find<decltype(&spanprof_error)>("spanprof_error");
  EXPECT_NE(std::string(error()).find("7fff0001"), std::string::npos) << error();
  // Its calls do nothing.
  copy.set(1, 1);
  spanprof_context seen = {};
  seen.size = sizeof seen;
  EXPECT_EQ(copy.get(&seen), -ENODEV);
  EXPECT_EQ(CountMappings(getpid(), "DD_OTEL_CTX"), 0u);
}

}  // namespace
}  // namespace spanprof::stress
