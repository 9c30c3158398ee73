// Threads in great number, and all ways in which one can end.

#include <atomic>
#include <cerrno>
#include <pthread.h>
#include <time.h>
#include <unistd.h>
#include <vector>

#include "scenario.h"

namespace spanprof::hostile {
namespace {

class SmallStack {
 public:
  SmallStack() {
    pthread_attr_init(&attributes_);
    pthread_attr_setstacksize(&attributes_, size_t{64} << 10);
  }
  ~SmallStack() { pthread_attr_destroy(&attributes_); }
  SmallStack(const SmallStack&) = delete;
  SmallStack& operator=(const SmallStack&) = delete;
  const pthread_attr_t* get() const { return &attributes_; }

 private:
  pthread_attr_t attributes_;
};

std::atomic<uint64_t> cleaned_up{0};
void CleanUp(void*) { cleaned_up.fetch_add(1); }

void* ReturnTwice(void* argument) {
  Burn(20);
  return static_cast<char*>(argument) + reinterpret_cast<uintptr_t>(argument);
}

void* ExitTwice(void* argument) {
  Burn(20);
  pthread_exit(static_cast<char*>(argument) + reinterpret_cast<uintptr_t>(argument));
}

void ComesAndGoesTenThousandTimes() {
  const SmallStack stack;
  constexpr uintptr_t kThreads = 10'000;
  constexpr uintptr_t kWave = 200;
  uint64_t sum = 0;
  uint64_t refused = 0;
  for (uintptr_t first = 1; first <= kThreads; first += kWave) {
    std::vector<pthread_t> wave;
    for (uintptr_t i = first; i < first + kWave; ++i) {
      pthread_t thread = {};
      if (pthread_create(&thread, stack.get(), i % 2 == 0 ? ReturnTwice : ExitTwice,
                         reinterpret_cast<void*>(i)) == 0) {
        wave.push_back(thread);
      } else {
        ++refused;
      }
    }
    for (const pthread_t thread : wave) {
      void* result = nullptr;
      pthread_join(thread, &result);
      sum += reinterpret_cast<uintptr_t>(result);
    }
  }
  ExpectEqual(static_cast<int64_t>(refused), 0, "threads that could not be created");
  ExpectEqual(static_cast<int64_t>(sum), kThreads * (kThreads + 1), "the sum of threads' results");
}

struct Gate {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
  bool open = false;
  std::atomic<uint64_t> passed{0};
};

void* WaitAtGate(void* argument) {
  auto* gate = static_cast<Gate*>(argument);
  pthread_mutex_lock(&gate->lock);
  while (!gate->open) pthread_cond_wait(&gate->opened, &gate->lock);
  pthread_mutex_unlock(&gate->lock);
  gate->passed.fetch_add(1);
  return nullptr;
}

// As many as the limits allow: a refusal is theirs, and no failure.
void HasManyAtOnce() {
  const SmallStack stack;
  Gate gate;
  std::vector<pthread_t> threads;
  for (int i = 0; i < 3'000; ++i) {
    pthread_t thread = {};
    if (pthread_create(&thread, stack.get(), WaitAtGate, &gate) != 0) break;
    threads.push_back(thread);
  }
  Expect(threads.size() >= 100, "threads at once", static_cast<int64_t>(threads.size()), 100);
  pthread_mutex_lock(&gate.lock);
  gate.open = true;
  pthread_cond_broadcast(&gate.opened);
  pthread_mutex_unlock(&gate.lock);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  ExpectEqual(static_cast<int64_t>(gate.passed), static_cast<int64_t>(threads.size()),
              "threads that passed the gate");
}

// Without anything to clean up: C++ knows how to unwind that only from a call.
[[gnu::noinline]] void SpinUntilCancelled() {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  volatile unsigned work = 0;
  for (;;) work = work + 1;
}

void* WaitForever(void* argument) {
  pthread_cleanup_push(CleanUp, nullptr);
  switch (reinterpret_cast<uintptr_t>(argument) % 4) {
    case 0:
      for (;;) sleep(1000);
    case 1: {
      int ends[2] = {};
      char byte = 0;
      // Not to be closed: the thread ends within read().
      static const int never = pipe(ends) == 0 ? ends[0] : -1;
      for (;;) (void)!read(never, &byte, 1);
    }
    case 2:
      SpinUntilCancelled();
      break;
    default:
      for (;;) {
        Burn(10);
        pthread_testcancel();
      }
  }
  pthread_cleanup_pop(0);
  return nullptr;
}

void CancelsThreads() {
  const SmallStack stack;
  constexpr uintptr_t kThreads = 48;
  cleaned_up = 0;
  std::vector<pthread_t> threads;
  for (uintptr_t i = 0; i < kThreads; ++i) {
    pthread_t thread = {};
    if (pthread_create(&thread, stack.get(), WaitForever, reinterpret_cast<void*>(i)) == 0) {
      threads.push_back(thread);
    }
  }
  uint64_t cancelled = 0;
  for (const pthread_t thread : threads) {
    timespec moment = {0, 500'000};
    while (nanosleep(&moment, &moment) != 0) {
    }
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    if (result == PTHREAD_CANCELED) ++cancelled;
  }
  ExpectEqual(static_cast<int64_t>(cancelled), static_cast<int64_t>(threads.size()),
              "threads that were cancelled");
  ExpectEqual(static_cast<int64_t>(cleaned_up), static_cast<int64_t>(threads.size()),
              "threads that cleaned up");
}

}  // namespace

const Scenario kThreads[] = {
    {"comes and goes ten thousand times", ComesAndGoesTenThousandTimes},
    {"has many at once", HasManyAtOnce},
    {"cancels threads", CancelsThreads},
    {nullptr, nullptr},
};

}  // namespace spanprof::hostile
