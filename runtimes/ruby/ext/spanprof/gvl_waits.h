#pragma once

// Waits for the VM's lock (the GVL): how often and how long each Ruby thread waited, and whether it
// waits now. Ruby 3.2 and newer report them.
//
// The VM's events come with or without the lock, on the thread or on another one, so the hook
// touches nothing but the thread's entry. Install and Link are for a thread that holds the lock.

#include <atomic>
#include <cstdint>

#include "ruby_api.h"
#include "ruby_threads.h"

namespace spanprof::ruby {

class GvlWaits {
 public:
  // Whether this Ruby reports them.
  static bool Available();

  // Before the first thread is linked. May raise.
  static void Install(RubyThreads& threads);
  // The hook, once and for good: taking it out would wait for a lock that a fork may have left
  // taken. Any thread.
  static void StartCounting();

  // Events of the thread go to this entry.
  static void Link(VALUE thread, RubyThread* entry);

  // Of all threads, also of those that have ended.
  static uint64_t count();
  static uint64_t nanoseconds();
};

}  // namespace spanprof::ruby
