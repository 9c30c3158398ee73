#include "sampling/observed_thread.h"

#include <cerrno>
#include <new>

namespace spanprof::sampling {
namespace {

struct ThreadStart {
  const ThreadObserver* observer;
  void* (*function)(void*);
  void* argument;
};

// Its destructor is what runs at every kind of a thread's end: return, pthread_exit, cancellation.
struct EndKey {
  EndKey() : exists(pthread_key_create(&key, OnThreadEnd) == 0) {}
  static void OnThreadEnd(void* observer) { static_cast<const ThreadObserver*>(observer)->ended(); }
  pthread_key_t key = 0;
  const bool exists;
};

const EndKey& ThreadEndKey() {
  static const EndKey* const kKey = new EndKey();  // threads may end while the process exits
  return *kKey;
}

// In every profile below a thread's own function: a name that tells people what it is.
extern "C" void* spanprof_thread_start(void* start) {
  const ThreadStart own = *static_cast<ThreadStart*>(start);
  delete static_cast<ThreadStart*>(start);
  own.observer->begun();
  if (const EndKey& end = ThreadEndKey(); end.exists) pthread_setspecific(end.key, own.observer);
  return own.function(own.argument);
}

}  // namespace

int CreateObservedThread(CreateThread* create, const ThreadObserver& observer, pthread_t* thread,
                         const pthread_attr_t* attributes, void* (*function)(void*),
                         void* argument) {
  (void)ThreadEndKey();  // made before the first thread that needs it
  auto* start = new (std::nothrow) ThreadStart{&observer, function, argument};
  if (start == nullptr) return EAGAIN;  // what pthread_create says when memory is short
  const int error = create(thread, attributes, spanprof_thread_start, start);
  if (error != 0) delete start;
  return error;
}

}  // namespace spanprof::sampling
