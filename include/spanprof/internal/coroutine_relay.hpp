#pragma once

// For coroutines of a library whose promise lets nothing be awaited but the library's own types, as
// asio::awaitable does: what is waited for is awaited by a coroutine of that library in between,
// which tells when the wait begins and when it is over.

#include <coroutine>
#include <source_location>
#include <type_traits>
#include <utility>

#include <spanprof/internal/coroutine_awaiters.hpp>
#include <spanprof/internal/coroutine_events.hpp>

namespace spanprof::internal::coroutine {

// A coroutine type whose own coroutines may await it, but not an awaiter of ours.
template <class Task>
concept AwaitsOnlyItsOwn = requires { typename std::coroutine_traits<Task>::promise_type; } &&
                           requires(typename std::coroutine_traits<Task>::promise_type& promise,
                                    Task task) { promise.await_transform(std::move(task)); } &&
                           !requires(typename std::coroutine_traits<Task>::promise_type& promise,
                                     TracedAwaiter<std::suspend_always> awaiter) {
                             promise.await_transform(std::move(awaiter));
                           };

// The coroutine whose state this is awaits the relay at once and lives longer than it. A relay that
// is destroyed in the middle of its wait tells nothing: its coroutine is destroyed too.
template <AwaitsOnlyItsOwn Task>
Task Relay(CoroutineState& state, std::source_location where, Task awaited) {
  state.Suspend(kKindSuspend, where, nullptr, nullptr, 0);
#if defined(__cpp_exceptions)
  try {
#endif
    if constexpr (std::is_void_v<decltype(std::move(awaited).await_resume())>) {
      co_await std::move(awaited);
      state.Resume();
    } else {
      decltype(auto) result = co_await std::move(awaited);
      state.Resume();
      co_return std::forward<decltype(result)>(result);
    }
#if defined(__cpp_exceptions)
  } catch (...) {
    state.Resume();
    throw;
  }
#endif
}

}  // namespace spanprof::internal::coroutine
