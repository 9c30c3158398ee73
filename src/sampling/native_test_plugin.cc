// A library that tests load and unload. SPANPROF_PLUGIN_SHAPE makes several different ones.

#include <cstdint>

namespace {

template <unsigned kDepth>
[[gnu::noinline]] int CallDeeper(int (*callback)(void*), void* data) {
  volatile char frame[kDepth * 24 + SPANPROF_PLUGIN_SHAPE * 8];
  frame[0] = 1;
  if constexpr (kDepth == 0) {
    return callback(data) + frame[0];
  } else {
    return CallDeeper<kDepth - 1>(callback, data) + frame[0];
  }
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int spanprof_test_plugin_call(int (*callback)(void*),
                                                                        void* data) {
  return CallDeeper<6>(callback, data) + 1;
}
