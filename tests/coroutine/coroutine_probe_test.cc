// What coroutines of many shapes look like in a recording: this process records itself.

#include <coroutine>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coroutine/harvester.h"
#include "tests/coroutine/recorded_events.h"
#include "tests/coroutine/scheduled_job.h"
#include "tests/coroutine/self_recording.h"
#include "tests/coroutine/target_process.h"
#include <spanprof/coroutine.hpp>

namespace spanprof::coroutine {
namespace {

using testing::ElementsAre;

std::string Here(int line) { return "coroutine_probe_test.cc:" + std::to_string(line); }

std::vector<std::string> Recorded(const std::function<void()>& body) {
  return RecordedHere([] { const Job first = Short(); }, body);
}

// A task by the mixin, with everything of its own: symmetric transfer at both ends.
template <class T>
class Task {
 public:
  struct promise_type : traced_promise {
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    struct ToAwaiter {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
        return self.promise().awaiter;
      }
      void await_resume() noexcept {}
    };
    auto final_suspend() noexcept { return traced_final(ToAwaiter{}); }
    void return_value(T result) { value = std::move(result); }
    void unhandled_exception() { problem = std::current_exception(); }

    std::coroutine_handle<> awaiter = std::noop_coroutine();
    T value{};
    std::exception_ptr problem;
  };

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Task() {
    if (handle_) handle_.destroy();
  }
  void Resume() const { handle_.resume(); }
  promise_type& promise() const { return handle_.promise(); }

  auto operator co_await() && {
    struct Awaiter {
      std::coroutine_handle<promise_type> task;
      bool await_ready() { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) {
        task.promise().awaiter = caller;
        return task;
      }
      T await_resume() { return std::move(task.promise().value); }
    };
    return Awaiter{handle_};
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// Names the coroutine that awaits it.
struct Named {
  const char* name;
  bool await_ready() { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> self) {
    self.promise().set_coroutine_name(name);
    return false;
  }
  void await_resume() {}
};

constexpr int kInnerAwait = __LINE__ + 2;
Task<std::unique_ptr<int>> Inner() {
  co_await Named{"inner"};
  co_return std::make_unique<int>(5);
}

constexpr int kOuterAwait = __LINE__ + 2;
Task<int> Outer() {
  co_await Named{"outer"};
  const std::unique_ptr<int> result = co_await Inner();
  co_return *result + 1;
}

TEST(CoroutineProbe, TheAwaitingAndTheAwaitedAreToldByNameAndPlace) {
  int value = 0;
  const std::vector<std::string> lines = Recorded([&] {
    const Task<int> task = Outer();
    task.Resume();
    value = task.promise().value;
  });
  EXPECT_EQ(value, 6);
  const std::vector<std::string> expected = {
      "birth outer",        "resume outer", "suspend outer " + Here(kOuterAwait),
      "resume outer",       "birth inner",  "suspend outer " + Here(kOuterAwait + 1),
      "awaits outer inner", "resume inner", "suspend inner " + Here(kInnerAwait),
      "resume inner",       "done inner",   "resume outer",
      "death inner",        "done outer",   "death outer"};
  EXPECT_EQ(lines, expected);
}

struct Reference {
  int* value;
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<>) {}
  int& await_resume() { return *value; }
};
struct NeverWaits {
  bool await_ready() { return true; }
  void await_suspend(std::coroutine_handle<>) {}
  int await_resume() { return 1; }
};

Task<int> Referring(int* value) {
  auto&& same = co_await Reference{value};
  static_assert(std::is_same_v<decltype(same), int&>);
  same = 42;
  co_return co_await NeverWaits{};
}

TEST(CoroutineProbe, ReferencesStayReferencesAndWhatIsReadyIsNoSuspension) {
  int value = 0;
  const std::vector<std::string> lines = Recorded([&] {
    const Task<int> task = Referring(&value);
    task.Resume();
    task.Resume();
  });
  EXPECT_EQ(value, 42);
  EXPECT_THAT(lines, ElementsAre("birth ", "resume ", testing::StartsWith("suspend  "), "resume ",
                                 "done ", "death "));
}

struct ThrowsWhenSuspended {
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<>) { throw std::runtime_error("no"); }
  void await_resume() {}
};

Task<int> Catching() {
  try {
    co_await ThrowsWhenSuspended{};
  } catch (const std::runtime_error&) {
    co_return 7;
  }
  co_return 0;
}

TEST(CoroutineProbe, ASuspensionThatThrowsGoesOnRunning) {
  const std::vector<std::string> lines = Recorded([&] {
    const Task<int> task = Catching();
    task.Resume();
    EXPECT_EQ(task.promise().value, 7);
  });
  EXPECT_THAT(lines, ElementsAre("birth ", "resume ", testing::StartsWith("suspend  "), "resume ",
                                 "done ", "death "));
}

// A generator whose promise is traced from outside, co_yield and all.
class Numbers {
 public:
  struct Promise {
    Numbers get_return_object() {
      return Numbers(std::coroutine_handle<Promise>::from_promise(*this));
    }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int next) {
      value = next;
      return {};
    }
    void return_void() {}
    void unhandled_exception() {}
    int value = 0;
  };
  using promise_type = traced<Promise>;
  explicit Numbers(std::coroutine_handle<Promise> handle) : handle_(handle) {}
  Numbers(Numbers&&) = delete;
  ~Numbers() { handle_.destroy(); }
  int Next() const {
    handle_.resume();
    return handle_.promise().value;
  }

 private:
  std::coroutine_handle<Promise> handle_;
};

Numbers CountTo(int last) {
  for (int i = 1; i <= last; ++i) co_yield i;
}

TEST(CoroutineProbe, YieldsAreToldFromOtherSuspensions) {
  const std::vector<std::string> lines = Recorded([&] {
    const Numbers numbers = CountTo(2);
    EXPECT_EQ(numbers.Next() + numbers.Next(), 3);
    numbers.Next();
  });
  EXPECT_THAT(lines, ElementsAre("birth ", "resume ", testing::StartsWith("yield  "), "resume ",
                                 testing::StartsWith("yield  "), "resume ", "done ", "death "));
}

// A promise that is somebody else's.
class ForeignTask {
 public:
  struct promise_type {
    ForeignTask get_return_object() {
      return ForeignTask(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  explicit ForeignTask(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  ForeignTask(ForeignTask&&) = delete;
  ~ForeignTask() { handle_.destroy(); }
  void Resume() const { handle_.resume(); }

 private:
  std::coroutine_handle<promise_type> handle_;
};

ForeignTask Probed() {
  coroutine_probe probe("probed");
  co_await probe(std::suspend_always{});
}

TEST(CoroutineProbe, APromiseOfOthersIsTracedByAProbeInTheBody) {
  const std::vector<std::string> lines = Recorded([&] {
    const ForeignTask task = Probed();
    task.Resume();
  });
  EXPECT_THAT(lines, ElementsAre("birth probed", "resume probed",
                                 testing::StartsWith("suspend probed coroutine_probe_test.cc:"),
                                 "resume probed", "death probed"));
}

TEST(CoroutineProbe, ADeepChainOfSymmetricTransfersNeedsNoStack) {
  // Each level awaits the next; at the bottom all of them return one after another.
  struct Chain {
    static Task<int> Level(int left) {
      if (left == 0) co_return 0;
      co_return 1 + co_await Level(left - 1);
    }
  };
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
  constexpr int kDepth = 100;  // unoptimised, g++ makes no tail calls
#else
  constexpr int kDepth = 100'000;
#endif
  int value = 0;
  (void)Recorded([&] {
    const Task<int> task = Chain::Level(kDepth);
    task.Resume();
    value = task.promise().value;
  });
  EXPECT_EQ(value, kDepth);
}

TEST(CoroutineProbe, AThreadThatEndsGivesItsRingToTheNext) {
  const std::vector<std::string> lines = Recorded([&] {
    const Job job = Short();
    std::thread([&] { job.Resume(); }).join();
  });
  EXPECT_THAT(lines, ElementsAre("birth ", "resume ", "done ", "death "));
}

}  // namespace
}  // namespace spanprof::coroutine
