// A small M:N scheduler with two threads, as people write them, and on request one of the mistakes
// that people make: `planted_scheduler healthy|lost_wakeup|hog|leak`.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <spanprof/coroutine.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Fiber {
 public:
  struct promise_type : spanprof::traced_promise {
    Fiber get_return_object() {
      return Fiber(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    void return_void() {}
    void unhandled_exception() { std::abort(); }
  };
  using Handle = std::coroutine_handle<promise_type>;
  Handle handle;

 private:
  explicit Fiber(Handle made) : handle(made) {}
};

class Scheduler {
 public:
  void Post(Fiber::Handle handle) {
    const std::lock_guard guard(lock_);
    handle.promise().mark_coroutine_ready();
    ready_.push_back(handle);
    changed_.notify_one();
  }

  auto Sleep(milliseconds time) {
    struct Awaiter {
      Scheduler* scheduler;
      milliseconds time;
      bool await_ready() { return false; }
      void await_suspend(Fiber::Handle self) {
        const std::lock_guard guard(scheduler->lock_);
        scheduler->timers_.emplace(Clock::now() + time, self);
      }
      void await_resume() {}
    };
    return Awaiter{this, time};
  }

  void RunUntil(Clock::time_point end) {
    std::thread other([this, end] { Work(end); });
    Work(end);
    other.join();
  }

 private:
  void Work(Clock::time_point end) {
    std::unique_lock guard(lock_);
    while (Clock::now() < end) {
      while (!timers_.empty() && timers_.begin()->first <= Clock::now()) {
        timers_.begin()->second.promise().mark_coroutine_ready();
        ready_.push_back(timers_.begin()->second);
        timers_.erase(timers_.begin());
      }
      if (ready_.empty()) {
        changed_.wait_for(guard, milliseconds(1));
        continue;
      }
      const Fiber::Handle next = ready_.front();
      ready_.pop_front();
      guard.unlock();
      next.resume();
      guard.lock();
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Fiber::Handle> ready_;
  std::multimap<Clock::time_point, Fiber::Handle> timers_;
};

// Wakes the one that waits. With `forgets`, a signal that comes before the wait is lost.
class Signal {
 public:
  Signal(Scheduler& scheduler, bool forgets) : scheduler_(scheduler), forgets_(forgets) {}

  void Set() {
    Fiber::Handle waiter;
    {
      const std::lock_guard guard(lock_);
      waiter = std::exchange(waiter_, nullptr);
      if (!waiter && !forgets_) set_ = true;
    }
    if (waiter) scheduler_.Post(waiter);
  }

  bool await_ready() {
    const std::lock_guard guard(lock_);
    return std::exchange(set_, false);
  }
  bool await_suspend(Fiber::Handle self) {
    const std::lock_guard guard(lock_);
    if (std::exchange(set_, false)) return false;
    waiter_ = self;
    return true;
  }
  void await_resume() {}

 private:
  Scheduler& scheduler_;
  bool forgets_;
  std::mutex lock_;
  bool set_ = false;
  Fiber::Handle waiter_;
};

struct NameMe {
  const char* name;
  bool await_ready() { return false; }
  bool await_suspend(Fiber::Handle self) {
    self.promise().set_coroutine_name(name);
    return false;
  }
  void await_resume() {}
};

Fiber Ticker(Scheduler& scheduler, const std::atomic<bool>& stop) {
  co_await NameMe{"ticker"};
  while (!stop) co_await scheduler.Sleep(milliseconds(10));
}

Fiber Sender(Scheduler& scheduler, Signal& signal) {
  co_await NameMe{"sender"};
  co_await scheduler.Sleep(milliseconds(5));
  signal.Set();
}

Fiber Receiver(Scheduler& scheduler, Signal& signal) {
  co_await NameMe{"receiver"};
  co_await scheduler.Sleep(milliseconds(30));  // the signal comes meanwhile
  co_await signal;
}

Fiber Cruncher(milliseconds time) {
  co_await NameMe{"cruncher"};
  const Clock::time_point end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

// Made and never started, without a name.
Fiber Unstarted() { co_return; }

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mistake = argc > 1 ? argv[1] : "healthy";
  Scheduler scheduler;
  Signal signal(scheduler, mistake == "lost_wakeup");
  std::atomic<bool> stop = false;
  std::vector<Fiber::Handle> fibers;
  for (int i = 0; i < 10; ++i) fibers.push_back(Ticker(scheduler, stop).handle);
  fibers.push_back(Receiver(scheduler, signal).handle);
  fibers.push_back(Sender(scheduler, signal).handle);
  fibers.push_back(Cruncher(milliseconds(mistake == "hog" ? 1500 : 1)).handle);
  for (const Fiber::Handle fiber : fibers) scheduler.Post(fiber);
  const Fiber::Handle unstarted = Unstarted().handle;
  // Fibers that have ended are destroyed, most of the time.
  for (int round = 0; round < 20; ++round) {
    stop = round >= 18;
    scheduler.RunUntil(Clock::now() + milliseconds(100));
    for (Fiber::Handle& fiber : fibers) {
      if (!fiber || !fiber.done()) continue;
      const bool forgotten = mistake == "leak" && fiber == fibers.back();
      if (!forgotten) std::exchange(fiber, nullptr).destroy();
    }
  }
  unstarted.destroy();
  return 0;
}
