// pthread_create, so that a thread is sampled from its first instruction to its last.

#include <pthread.h>

#include "context/core_election.h"
#include "preload/real_function.h"
#include "sampling/observed_thread.h"
#include "sampling/thread_hooks.h"

namespace spanprof::preload {
namespace {

constinit RealFunction<sampling::CreateThread> real_pthread_create{"pthread_create"};

// Whoever is the active core hears of it.
constexpr sampling::ThreadObserver kObserver = {
    .begun =
        [] {
          if (const context::CoreInterface* core = context::ActiveCore())
            core->profiler().thread_started();
        },
    .ended =
        [] {
          if (const context::CoreInterface* core = context::ActiveCore())
            core->profiler().thread_ended();
        },
};

int CreateReally(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                 void* argument) {
  return real_pthread_create(thread, attributes, function, argument);
}

[[gnu::constructor]] void OnLoad() {
  real_pthread_create.Find();
  sampling::DoNotPatchThreadCreation();
}

}  // namespace
}  // namespace spanprof::preload

extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* thread,
                                                             const pthread_attr_t* attributes,
                                                             void* (*function)(void*),
                                                             void* argument) noexcept {
  using namespace spanprof;  // NOLINT(google-build-using-namespace)
  return sampling::CreateObservedThread(preload::CreateReally, preload::kObserver, thread,
                                        attributes, function, argument);
}
