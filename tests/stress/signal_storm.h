#pragma once

// A thread that is interrupted more than ten thousand times a second, at no particular point.
//
//   SignalHandler handler(SIGUSR1, &OnSignal);
//   std::thread([] { SignalStorm storm(SIGUSR1); ... });

#include <csignal>
#include <ctime>

namespace spanprof::stress {

enum class HandlerStack { kNormal, kAlternate, kAlternateDisarmed };

// Installs a handler for the object's life. SA_RESTART; SA_ONSTACK unless kNormal.
class SignalHandler {
 public:
  SignalHandler(int signal, void (*handler)(int), HandlerStack stack = HandlerStack::kNormal);
  ~SignalHandler();
  SignalHandler(const SignalHandler&) = delete;
  SignalHandler& operator=(const SignalHandler&) = delete;

 private:
  const int signal_;
  struct sigaction previous_ = {};
};

// Memory for an alternate stack. Disarmed: with SS_AUTODISARM, so that inside the handler the
// system says that there is no alternate stack.
class AlternateStack {
 public:
  explicit AlternateStack(HandlerStack stack);
  ~AlternateStack();
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

  // Gives the calling thread the stack, until Remove or the thread's end. False: it cannot be had.
  bool Install();
  void Remove();

 private:
  const HandlerStack stack_;
  void* memory_ = nullptr;
  stack_t previous_ = {};
};

// Sends the signal to the thread that made the object, every few dozen microseconds of real time,
// by a timer of its own. Ends with the object, on the same thread.
class SignalStorm {
 public:
  explicit SignalStorm(int signal);
  ~SignalStorm();
  SignalStorm(const SignalStorm&) = delete;
  SignalStorm& operator=(const SignalStorm&) = delete;
  bool ok() const { return ok_; }

 private:
  const int signal_;
  timer_t timer_ = {};
  bool ok_ = false;
};

}  // namespace spanprof::stress
