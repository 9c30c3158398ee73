#pragma once

// Tracing C++20 coroutines: each birth, resume, suspension (with its place in the source), end and
// death of a coroutine becomes an event that `spanprof coro` collects from outside. Off, an event
// costs one predictable branch. Header-only; nothing has to be linked.
//
// One line of change, for a promise of yours. Either of the two:
//
//   struct promise_type : spanprof::traced_promise { ... };     // its co_awaits, birth and death
//   using promise_type = spanprof::traced<promise>;             // initial, final suspend and
//                                                               // co_yield as well
//
// traced_promise has an initial_suspend and a final_suspend of its own (both suspend_always), used
// unless the promise defines them. What the promise defines itself hides what is inherited; it can
// be wrapped by hand: `return traced_initial(std::suspend_never{});`.
//
// For a promise that one does not own, a probe in the coroutine's body:
//
//   foreign::task<> Work() {
//     spanprof::coroutine_probe probe("work");
//     co_await probe(socket.read());
//   }
//
// With Asio: co_await probe(timer.async_wait(asio::use_awaitable)). A coroutine that another one
// awaits gets the probe handed down, so that its waits are those of the one at the outside.
//
// If libspanprof is linked, a coroutine carries its trace context: it starts with its creator's,
// has its own again at each resume, on whatever thread, and gives the thread back what that had.
//
// Linux, g++ 12 and clang 16 or newer.

#include <coroutine>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

#include <spanprof/internal/coroutine_awaiters.hpp>
#include <spanprof/internal/coroutine_events.hpp>
#include <spanprof/internal/coroutine_relay.hpp>

namespace spanprof {

// NOLINTBEGIN(readability-identifier-naming): named as the standard library names what they are for

class traced_promise {
 public:
  traced_promise() { state_.Born(nullptr); }
  ~traced_promise() { state_.Died(); }
  traced_promise(const traced_promise&) = delete;
  traced_promise& operator=(const traced_promise&) = delete;

  // Names the coroutine in what `spanprof coro` shows. The text must outlive it: a literal, say.
  void set_coroutine_name(const char* name) { state_.Name(name); }
  // For schedulers: this coroutine has just been put into the queue. The time to its next resume is
  // the scheduling latency that `spanprof coro report` shows.
  void mark_coroutine_ready() const { state_.Ready(); }
  // At most 31 bytes that go with each event to a foreign cTP harvester.
  void set_coroutine_payload(std::string_view bytes) { state_.Payload(bytes); }

  template <class Awaitable>
  auto await_transform(Awaitable&& awaitable,
                       std::source_location where = std::source_location::current()) {
    return internal::coroutine::MakeTracedAwaiter(state_, internal::coroutine::kKindSuspend, where,
                                                  std::forward<Awaitable>(awaitable));
  }

  template <class Awaiter>
  auto traced_initial(Awaiter awaiter) {
    return internal::coroutine::InitialAwaiter<Awaiter>{std::move(awaiter), state_};
  }
  template <class Awaiter>
  auto traced_final(Awaiter awaiter) noexcept {
    return internal::coroutine::FinalAwaiter<Awaiter>{std::move(awaiter), state_};
  }
  // For yield_value: `value_ = value; return traced_yield(std::suspend_always{});`
  template <class Awaiter>
  auto traced_yield(Awaiter awaiter, std::source_location where = std::source_location::current()) {
    return internal::coroutine::TracedAwaiter<Awaiter>{std::move(awaiter), state_,
                                                       internal::coroutine::kKindYield, where};
  }

  auto initial_suspend() { return traced_initial(std::suspend_always{}); }
  auto final_suspend() noexcept { return traced_final(std::suspend_always{}); }

 private:
  internal::coroutine::CoroutineState state_;
};

// A promise with everything traced. `Promise` and handles to it stay as they are:
// coroutine_handle<Promise> is a handle to the coroutine as before.
template <class Promise>
class traced : public Promise {
 public:
  using spanprof_traced_promise = Promise;

  template <class... Arguments>
    requires std::is_constructible_v<Promise, Arguments...>
  explicit traced(Arguments&&... arguments) : Promise(std::forward<Arguments>(arguments)...) {
    // Handles are made from the promise's address and alignment alone.
    static_assert(alignof(traced) <= 2 * sizeof(void*), "the promise is over-aligned");
    state_.Born(std::coroutine_handle<traced>::from_promise(*this).address());
  }
  ~traced() { state_.Died(); }
  traced(const traced&) = delete;
  traced& operator=(const traced&) = delete;

  void set_coroutine_name(const char* coroutine_name) { state_.Name(coroutine_name); }
  void mark_coroutine_ready() const { state_.Ready(); }
  void set_coroutine_payload(std::string_view payload) { state_.Payload(payload); }

  auto initial_suspend() {
    using Awaiter = decltype(Promise::initial_suspend());
    return internal::coroutine::InitialAwaiter<Awaiter>{Promise::initial_suspend(), state_};
  }
  auto final_suspend() noexcept {
    using Awaiter = decltype(Promise::final_suspend());
    return internal::coroutine::FinalAwaiter<Awaiter>{Promise::final_suspend(), state_};
  }

  template <class Awaitable>
  auto await_transform(Awaitable&& awaited,
                       std::source_location source = std::source_location::current()) {
    using internal::coroutine::kKindSuspend;
    if constexpr (requires(Promise& inner) {
                    inner.await_transform(std::forward<Awaitable>(awaited));
                  }) {
      using Transformed =
          decltype(std::declval<Promise&>().await_transform(std::forward<Awaitable>(awaited)));
      if constexpr (std::is_reference_v<Transformed>) {
        return internal::coroutine::MakeTracedAwaiter(
            state_, kKindSuspend, source,
            Promise::await_transform(std::forward<Awaitable>(awaited)));
      } else {
        return internal::coroutine::OwningAwaiter<Transformed>(
            Promise::await_transform(std::forward<Awaitable>(awaited)), state_, source);
      }
    } else {
      return internal::coroutine::MakeTracedAwaiter(state_, kKindSuspend, source,
                                                    std::forward<Awaitable>(awaited));
    }
  }

  template <class Value>
    requires requires(Promise& inner, Value&& yielded) {
      inner.yield_value(std::forward<Value>(yielded));
    }
  auto yield_value(Value&& yielded, std::source_location source = std::source_location::current()) {
    using Awaiter = decltype(Promise::yield_value(std::forward<Value>(yielded)));
    return internal::coroutine::TracedAwaiter<Awaiter>{
        Promise::yield_value(std::forward<Value>(yielded)), state_, internal::coroutine::kKindYield,
        source};
  }

 private:
  internal::coroutine::CoroutineState state_;
};

// Traces a coroutine whose promise is somebody else's, from where it stands to the end of its
// scope.
class coroutine_probe {
 public:
  explicit coroutine_probe(const char* name = nullptr) {
    state_.Name(name);
    state_.Born(nullptr);
    state_.Resume();
  }
  ~coroutine_probe() { state_.Died(); }
  coroutine_probe(const coroutine_probe&) = delete;
  coroutine_probe& operator=(const coroutine_probe&) = delete;

  // What is awaited by its result, in the coroutine or in one that it awaits and hands this to.
  template <class Awaitable>
  auto operator()(Awaitable&& awaitable,
                  std::source_location where = std::source_location::current()) {
    using internal::coroutine::AwaitsOnlyItsOwn;
    if constexpr (AwaitsOnlyItsOwn<std::remove_cvref_t<Awaitable>>) {
      return internal::coroutine::Relay(state_, where, std::forward<Awaitable>(awaitable));
    } else {
      return internal::coroutine::MakeTracedAwaiter(state_, internal::coroutine::kKindSuspend,
                                                    where, std::forward<Awaitable>(awaitable));
    }
  }

 private:
  internal::coroutine::CoroutineState state_;
};

// NOLINTEND(readability-identifier-naming)

}  // namespace spanprof
