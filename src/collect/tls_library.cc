// A library with a thread-local variable, for thread_local_variable_test: compiled once for each
// way in which code can reach such a variable. SPANPROF_NAME is the variable's.

#define SPANPROF_JOIN_AGAIN(a, b) a##b
#define SPANPROF_JOIN(a, b) SPANPROF_JOIN_AGAIN(a, b)

extern "C" {
// Not at the block's start.
[[gnu::visibility("default")]] thread_local long SPANPROF_JOIN(SPANPROF_NAME, _before)[5] = {};
[[gnu::visibility("default")]] thread_local long SPANPROF_NAME = 42;
[[gnu::visibility("default")]] void* SPANPROF_JOIN(SPANPROF_NAME, _address)() {
  SPANPROF_JOIN(SPANPROF_NAME, _before)[0] = 1;
  return &SPANPROF_NAME;
}
}
