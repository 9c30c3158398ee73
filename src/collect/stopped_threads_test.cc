#include "collect/stopped_threads.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <new>
#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "collect/own_thread_pointer.h"

namespace spanprof::collect {
namespace {

// A child that counts, and the count, which both see.
class CountingChild {
 public:
  CountingChild() {
    void* const page =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (page) Shared();
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signals_seen = &shared_->signals;
    signal(SIGUSR1, [](int) { signals_seen->fetch_add(1); });
    shared_->thread_pointer = OwnThreadPointer();
    for (;;) shared_->count.fetch_add(1);
  }
  ~CountingChild() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    munmap(shared_, sizeof(Shared));
  }
  CountingChild(const CountingChild&) = delete;
  CountingChild& operator=(const CountingChild&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] uint64_t count() const { return shared_->count.load(); }
  [[nodiscard]] uint64_t signals() const { return shared_->signals.load(); }
  [[nodiscard]] uint64_t thread_pointer() const { return shared_->thread_pointer.load(); }
  // Returns when it has counted on.
  void WaitUntilItGoesOn() const {
    const uint64_t before = count();
    while (count() == before) usleep(100);
  }

 private:
  struct Shared {
    std::atomic<uint64_t> count{0};
    std::atomic<uint64_t> signals{0};
    std::atomic<uint64_t> thread_pointer{0};
  };
  static inline std::atomic<uint64_t>* signals_seen = nullptr;
  Shared* shared_ = nullptr;
  pid_t pid_ = 0;
};

TEST(StoppedThreads, StandStillDuringTheLookAndGoOnAfterIt) {
  const CountingChild child;
  child.WaitUntilItGoesOn();
  const std::array tids = {child.pid()};
  for (int round = 0; round < 50; ++round) {
    const StopCounts counts = LookAtStoppedThreads(tids, [&](pid_t tid, uint64_t thread_pointer) {
      EXPECT_EQ(tid, child.pid());
      EXPECT_EQ(thread_pointer, child.thread_pointer());
      const uint64_t before = child.count();
      usleep(500);
      EXPECT_EQ(child.count(), before);
    });
    EXPECT_EQ(counts.looked_at, 1u);
    child.WaitUntilItGoesOn();
  }
}

TEST(StoppedThreads, SignalsThatArriveMeanwhileAreDelivered) {
  const CountingChild child;
  child.WaitUntilItGoesOn();
  const std::array tids = {child.pid()};
  constexpr uint64_t kRounds = 50;
  for (uint64_t round = 1; round <= kRounds; ++round) {
    // Before it stops in one half of the rounds, while it stands in the other.
    if (round % 2 == 0) kill(child.pid(), SIGUSR1);
    LookAtStoppedThreads(tids, [&](pid_t, uint64_t) {
      if (round % 2 != 0) kill(child.pid(), SIGUSR1);
    });
    while (child.signals() < round) usleep(100);
  }
  EXPECT_EQ(child.signals(), kRounds);
}

TEST(StoppedThreads, OneThatIsGoneOrRefusedIsCounted) {
  std::array<pid_t, 1> tids = {0};
  {
    const CountingChild child;
    tids[0] = child.pid();
  }
  const auto never = [](pid_t, uint64_t) { ADD_FAILURE() << "it is not there"; };
  EXPECT_EQ(LookAtStoppedThreads(tids, never).ended, 1u);
  tids[0] = getpid();  // a process does not trace itself
  EXPECT_EQ(LookAtStoppedThreads(tids, never).refused, 1u);
}

TEST(StoppedThreads, AStoppedProcessStaysStopped) {
  const CountingChild child;
  child.WaitUntilItGoesOn();
  kill(child.pid(), SIGSTOP);
  int status = 0;
  waitpid(child.pid(), &status, WUNTRACED);
  const std::array tids = {child.pid()};
  EXPECT_EQ(LookAtStoppedThreads(tids, [](pid_t, uint64_t) {}).looked_at, 1u);
  const uint64_t before = child.count();
  usleep(20'000);
  EXPECT_EQ(child.count(), before);
  kill(child.pid(), SIGCONT);
  child.WaitUntilItGoesOn();
}

}  // namespace
}  // namespace spanprof::collect
