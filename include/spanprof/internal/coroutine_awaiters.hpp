#pragma once

// Awaiters that tell a CoroutineState about a suspension and a resume and otherwise do what the
// awaiter inside them does: its results come through with their type, references as references.

#include <coroutine>
#include <cstddef>
#include <memory>
#include <source_location>
#include <type_traits>
#include <utility>

#include <spanprof/internal/coroutine_events.hpp>

namespace spanprof::internal::coroutine {

template <class Awaitable>
decltype(auto) AwaiterOf(Awaitable&& awaitable) {
  if constexpr (requires { std::forward<Awaitable>(awaitable).operator co_await(); }) {
    return std::forward<Awaitable>(awaitable).operator co_await();
  } else if constexpr (requires { operator co_await(std::forward<Awaitable>(awaitable)); }) {
    return operator co_await(std::forward<Awaitable>(awaitable));
  } else {
    return std::forward<Awaitable>(awaitable);
  }
}

// An awaiter may name the promise that it takes a handle of, and does not know of traced<>.
template <class Awaiter, class Promise>
decltype(auto) SuspendInner(Awaiter& awaiter, std::coroutine_handle<Promise> handle) {
  if constexpr (requires { awaiter.await_suspend(handle); }) {
    return awaiter.await_suspend(handle);
  } else {
    using Inner = typename Promise::spanprof_traced_promise;
    return awaiter.await_suspend(std::coroutine_handle<Inner>::from_address(handle.address()));
  }
}

// A suspension that ends by an exception out of await_suspend goes on in its coroutine.
class ResumeIfThrown {
 public:
  explicit ResumeIfThrown(CoroutineState& state) : state_(&state) {}
  ~ResumeIfThrown() {
    if (state_ != nullptr) state_->Resume();
  }
  ResumeIfThrown(const ResumeIfThrown&) = delete;
  ResumeIfThrown& operator=(const ResumeIfThrown&) = delete;
  void Dismiss() { state_ = nullptr; }

 private:
  CoroutineState* state_;
};

template <class Awaiter>
struct TracedAwaiter {
  Awaiter awaiter;  // a value, or a reference to what stands in the co_await expression
  CoroutineState& state;
  Kind kind;
  std::source_location where;
  bool suspended = false;

  bool await_ready() { return static_cast<bool>(awaiter.await_ready()); }

  // Once the inner await_suspend has run, the coroutine may be gone, and this object with it.
  template <class Promise>
  auto await_suspend(std::coroutine_handle<Promise> handle) {
    suspended = true;
    using Inner = std::remove_reference_t<Awaiter>;
    state.Suspend(kind, where, handle.address(), std::addressof(awaiter),
                  std::is_empty_v<Inner> ? 0 : sizeof(Inner));
    ResumeIfThrown guard(state);
    if constexpr (std::is_void_v<decltype(SuspendInner(awaiter, handle))>) {
      SuspendInner(awaiter, handle);
      guard.Dismiss();
    } else {
      auto next = SuspendInner(awaiter, handle);
      guard.Dismiss();
      return next;
    }
  }

  decltype(auto) await_resume() {
    if (suspended) state.Resume();
    return awaiter.await_resume();
  }
};

template <class Awaitable>
auto MakeTracedAwaiter(CoroutineState& state, Kind kind, const std::source_location& where,
                       Awaitable&& awaitable) {
  using Awaiter = decltype(AwaiterOf(std::forward<Awaitable>(awaitable)));
  return TracedAwaiter<Awaiter>{AwaiterOf(std::forward<Awaitable>(awaitable)), state, kind, where};
}

// For what a promise's own await_transform returned by value: it has to live somewhere.
template <class Awaitable>
class OwningAwaiter {
 public:
  OwningAwaiter(Awaitable&& awaitable, CoroutineState& state, const std::source_location& where)
      : awaitable_(std::forward<Awaitable>(awaitable)),
        inner_{AwaiterOf(std::move(awaitable_)), state, kKindSuspend, where} {}
  OwningAwaiter(const OwningAwaiter&) = delete;
  OwningAwaiter& operator=(const OwningAwaiter&) = delete;

  bool await_ready() { return inner_.await_ready(); }
  template <class Promise>
  auto await_suspend(std::coroutine_handle<Promise> handle) {
    return inner_.await_suspend(handle);
  }
  decltype(auto) await_resume() { return inner_.await_resume(); }

 private:
  Awaitable awaitable_;
  TracedAwaiter<decltype(AwaiterOf(std::declval<Awaitable>()))> inner_;
};

// The start. Its suspension needs no event: a coroutine is suspended from its birth on.
template <class Awaiter>
struct InitialAwaiter {
  Awaiter awaiter;
  CoroutineState& state;

  bool await_ready() { return static_cast<bool>(awaiter.await_ready()); }
  template <class Promise>
  auto await_suspend(std::coroutine_handle<Promise> handle) {
    if (CurrentMode() != 0) state.LearnFrame(handle.address());
    return SuspendInner(awaiter, handle);
  }
  decltype(auto) await_resume() {
    state.Resume();
    return awaiter.await_resume();
  }
};

template <class Awaiter>
struct FinalAwaiter {
  Awaiter awaiter;
  CoroutineState& state;

  bool await_ready() noexcept { return static_cast<bool>(awaiter.await_ready()); }
  template <class Promise>
  auto await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    state.Suspend(kKindDone, std::source_location{}, handle.address(), nullptr, 0);
    return SuspendInner(awaiter, handle);
  }
  void await_resume() noexcept { awaiter.await_resume(); }
};

}  // namespace spanprof::internal::coroutine
