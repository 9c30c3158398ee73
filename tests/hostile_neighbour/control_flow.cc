// Ways through the code that are none of call and return.

#include <array>
#include <csetjmp>
#include <cstring>
#include <memory>
#include <pthread.h>
#include <signal.h>
#include <stdexcept>
#include <thread>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "scenario.h"

namespace spanprof::hostile {
namespace {

struct CountsItsEnd {
  explicit CountsItsEnd(int& count) : count_(count) {}
  ~CountsItsEnd() { ++count_; }
  int& count_;
};

[[gnu::noinline]] int ThrowFrom(int depth, int& ends) {
  const CountsItsEnd end(ends);
  if (depth == 0) throw std::runtime_error("deep");
  const int below = ThrowFrom(depth - 1, ends);
  return below + depth;
}

void ThrowsFromFarBelow() {
  for (int i = 0; i < 60; ++i) {
    int ends = 0;
    int caught = 0;
    try {
      ThrowFrom(150, ends);
    } catch (const std::runtime_error& error) {
      caught = strcmp(error.what(), "deep") == 0 ? 1 : 0;
    }
    ExpectEqual(caught, 1, "exceptions caught");
    ExpectEqual(ends, 151, "destructors run by an exception");
  }
}

thread_local sigjmp_buf jump;

// Handlers of these signals are set once, by the constructor: the scenarios run beside others.
const int kJumpSignal = SIGRTMIN + 5;
const int kPlainJumpSignal = SIGRTMIN + 6;

void LeaveByJump(int) { siglongjmp(jump, 1); }

[[gnu::noinline]] void BurnAtDepth(int depth) {
  if (depth == 0) {
    Burn(5'000'000);  // the jump comes before
  } else {
    BurnAtDepth(depth - 1);
  }
  asm volatile("");  // no tail call
}

// By a timer, wherever it is: also inside our handler's caller, the program's own code.
void JumpsOutOfItsHandlers() {
  struct sigaction action = {};
  action.sa_handler = LeaveByJump;
  sigaction(kJumpSignal, &action, nullptr);
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kJumpSignal;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  timer_t timer = nullptr;
  ExpectEqual(timer_create(CLOCK_MONOTONIC, &event, &timer), 0, "timer_create");
  volatile int jumps = 0;
  while (jumps < 30) {
    if (sigsetjmp(jump, 1) == 0) {
      const itimerspec once = {{0, 0}, {0, 700'000}};
      timer_settime(timer, 0, &once, nullptr);
      BurnAtDepth(20);
    }
    jumps = jumps + 1;
  }
  timer_delete(timer);
  ExpectEqual(jumps, 30, "jumps out of a handler");
}

// A jump that does not restore the mask leaves the handler's signal blocked, and no other.
void JumpsWithoutTheMask() {
  struct sigaction action = {};
  action.sa_handler = LeaveByJump;
  sigaction(kPlainJumpSignal, &action, nullptr);
  sigset_t only, now;
  sigemptyset(&only);
  sigaddset(&only, kPlainJumpSignal);
  if (sigsetjmp(jump, 0) == 0) pthread_kill(pthread_self(), kPlainJumpSignal);
  pthread_sigmask(SIG_UNBLOCK, &only, &now);
  ExpectEqual(sigismember(&now, kPlainJumpSignal), 1, "the signal that was left by a jump");
  ExpectEqual(sigismember(&now, SIGPROF), 0, "SIGPROF after a jump");
  ExpectEqual(sigismember(&now, SIGURG), 0, "SIGURG after a jump");
}

struct Fiber {
  ucontext_t context = {};
  std::unique_ptr<char[]> stack;
  uint64_t sum = 0;
  bool done = false;
};
thread_local ucontext_t scheduler;
thread_local Fiber* current = nullptr;

void RunFiber() {
  Fiber* const self = current;
  for (uint64_t i = 1; i <= 200; ++i) {
    self->sum += i;
    Burn(5);
    swapcontext(&self->context, &scheduler);
  }
  self->done = true;
  swapcontext(&self->context, &scheduler);
}

void SwitchesStacks() {
  constexpr size_t kStackBytes = size_t{64} << 10;
  std::array<Fiber, 8> fibers;
  for (Fiber& fiber : fibers) {
    fiber.stack = std::make_unique<char[]>(kStackBytes);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    makecontext(&fiber.context, RunFiber, 0);
  }
  for (size_t left = fibers.size(); left > 0;) {
    for (Fiber& fiber : fibers) {
      if (fiber.done) continue;
      current = &fiber;
      swapcontext(&scheduler, &fiber.context);
      if (fiber.done) --left;
    }
  }
  for (const Fiber& fiber : fibers) {
    ExpectEqual(static_cast<int64_t>(fiber.sum), 20100, "the sum that a fiber made");
  }
}

// Overflows its stack, and comes back through a handler on an alternate one.
[[gnu::noinline]] uint64_t Overflow(uint64_t depth) {
  volatile char room[4096];
  room[depth % sizeof room] = 1;
  if (depth == ~uint64_t{0}) return 0;  // never
  return Overflow(depth + 1) + static_cast<uint64_t>(room[depth % sizeof room]);
}

void OverflowsItsStack() {
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = LeaveByJump;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, &before);
  volatile int recovered = 0;
  std::thread thread([&recovered] {
    constexpr size_t kBytes = size_t{64} << 10;
    const auto memory = std::make_unique<char[]>(kBytes);
    stack_t alternate = {};
    alternate.ss_sp = memory.get();
    alternate.ss_size = kBytes;
    stack_t now = {};
    ExpectEqual(sigaltstack(&alternate, nullptr), 0, "sigaltstack");
    sigaltstack(nullptr, &now);
    Expect(now.ss_sp == memory.get(), "the alternate stack that was set", 0, 0);
    while (recovered < 3) {
      if (sigsetjmp(jump, 1) == 0) Overflow(0);
      recovered = recovered + 1;
    }
    alternate.ss_flags = SS_DISABLE;
    sigaltstack(&alternate, nullptr);
  });
  thread.join();
  sigaction(SIGSEGV, &before, nullptr);
  ExpectEqual(recovered, 3, "stack overflows survived");
}

}  // namespace

const Scenario kControlFlow[] = {
    {"throws from far below", ThrowsFromFarBelow},
    {"jumps out of its handlers", JumpsOutOfItsHandlers},
    {"jumps without the mask", JumpsWithoutTheMask},
    {"switches stacks", SwitchesStacks},
    {"overflows its stack", OverflowsItsStack},
    {nullptr, nullptr},
};

}  // namespace spanprof::hostile
