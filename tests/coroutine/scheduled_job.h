#pragma once

// A coroutine type as people write it for a scheduler of their own, traced by one line, and a
// scheduler with two threads that hands jobs from one to the other.

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <utility>

#include <spanprof/coroutine.hpp>

namespace spanprof::coroutine {

class Job {
 public:
  struct Promise {
    Job get_return_object() { return Job(std::coroutine_handle<Promise>::from_promise(*this)); }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::abort(); }
  };
  using promise_type = spanprof::traced<Promise>;

  Job() = default;
  Job(Job&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Job& operator=(Job&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Job() {
    if (handle_) handle_.destroy();
  }

  void Resume() const { handle_.resume(); }
  [[nodiscard]] bool done() const { return handle_.done(); }
  [[nodiscard]] void* address() const { return handle_.address(); }

 private:
  explicit Job(std::coroutine_handle<Promise> handle) : handle_(handle) {}
  std::coroutine_handle<Promise> handle_;
};

inline Job Looping(const bool& stop) {
  while (!stop) co_await std::suspend_always{};
}

inline Job Short() { co_return; }

}  // namespace spanprof::coroutine
