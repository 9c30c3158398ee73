#pragma once

// A thread that says when it begins and when it ends, whatever way it ends: for functions that
// stand before pthread_create.

#include <pthread.h>

namespace spanprof::sampling {

// Called on the thread itself.
struct ThreadObserver {
  void (*begun)();
  void (*ended)();
};

using CreateThread = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

// `observer` has to stay for ever. Returns what `create` does.
int CreateObservedThread(CreateThread* create, const ThreadObserver& observer, pthread_t* thread,
                         const pthread_attr_t* attributes, void* (*function)(void*),
                         void* argument);

}  // namespace spanprof::sampling
