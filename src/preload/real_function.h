#pragma once

// The function that a preloaded one stands before: libc's, or another preloaded library's. Looked
// up when the library is loaded (Find, in a constructor), because dlsym may allocate and lock,
// which a function that stands before sigaction or _exit must not. A call that comes still earlier,
// from another library's constructor, looks it up itself.
//
//   constinit RealFunction<int(int)> real_close{"close"};

#include <atomic>
#include <dlfcn.h>

namespace spanprof::preload {

template <class Function>
class RealFunction {
 public:
  explicit constexpr RealFunction(const char* name) : name_(name) {}

  void Find() {
    function_.store(reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_)),
                    std::memory_order_relaxed);
  }
  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    if (function_.load(std::memory_order_relaxed) == nullptr) Find();
    return function_.load(std::memory_order_relaxed)(arguments...);
  }

 private:
  const char* const name_;
  std::atomic<Function*> function_{nullptr};
};

}  // namespace spanprof::preload
