// pthread_create, so that a thread is sampled from its first instruction to its last.

#include <cerrno>
#include <new>
#include <pthread.h>

#include "context/core_election.h"
#include "preload/real_function.h"

namespace spanprof::preload {
namespace {

constinit RealFunction<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>
    real_pthread_create{"pthread_create"};

struct ThreadStart {
  void* (*function)(void*);
  void* argument;
};

// Its destructor is what runs at every kind of a thread's end: return, pthread_exit, cancellation.
pthread_key_t end_key;
bool end_key_exists = false;

void OnThreadEnd(void*) {
  if (const context::CoreInterface* core = context::ActiveCore()) core->thread_ended();
}

[[gnu::constructor]] void OnLoad() {
  real_pthread_create.Find();
  end_key_exists = pthread_key_create(&end_key, OnThreadEnd) == 0;
}

// In every profile below a thread's own function: a name that tells people what it is.
extern "C" void* spanprof_thread_start(void* start) {
  const ThreadStart own = *static_cast<ThreadStart*>(start);
  delete static_cast<ThreadStart*>(start);
  if (const context::CoreInterface* core = context::ActiveCore()) {
    core->thread_started();
    if (end_key_exists) pthread_setspecific(end_key, &end_key);
  }
  return own.function(own.argument);
}

}  // namespace
}  // namespace spanprof::preload

extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* thread,
                                                             const pthread_attr_t* attributes,
                                                             void* (*function)(void*),
                                                             void* argument) noexcept {
  using namespace spanprof::preload;  // NOLINT(google-build-using-namespace)
  auto* start = new (std::nothrow) ThreadStart{function, argument};
  if (start == nullptr) return EAGAIN;  // what pthread_create says when memory is short
  const int error = real_pthread_create(thread, attributes, spanprof_thread_start, start);
  if (error != 0) delete start;
  return error;
}
