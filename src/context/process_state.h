#pragma once

// The part of the core's state that must not outlive a fork: it lies in memory that reads as zero
// in a forked child, so a child recognises itself even when nobody told it that it is one (_Fork,
// raw clone), and finds no lock held by a thread that it does not have.
//
// Signal-safe, except for EnsureProcessState.

#include <atomic>
#include <cstdint>

#include "context/counters.h"
#include <spanprof/internal/thread_context.hpp>

namespace spanprof::context {

struct ProcessState {
  std::atomic<uint32_t> pid;  // 0: this memory was wiped, we are in a forked child
  std::atomic<uint32_t> registry_lock;
  std::atomic<uint32_t> configuration_lock;
  std::atomic<uint32_t> endpoint_lock;
  // Detached objects, oldest first; and how far the chunks are used.
  std::atomic<internal::ThreadContext*> free_head;
  std::atomic<internal::ThreadContext*> free_tail;
  std::atomic<uint32_t> next_unused;
  std::atomic<uint64_t> counters[kCounterCount];
};

// Null before the first EnsureProcessState.
ProcessState* CurrentProcessState();

// Maps the state once a process. False: there is no memory for it.
bool EnsureProcessState();

// Whether the system wipes the state in a forked child by itself.
bool ForkWipesMemory();

// A lock in wiped memory. Hold it with signals blocked, for a bounded time.
class WipedLock {
 public:
  explicit WipedLock(std::atomic<uint32_t>& lock);
  ~WipedLock();
  WipedLock(const WipedLock&) = delete;
  WipedLock& operator=(const WipedLock&) = delete;

 private:
  std::atomic<uint32_t>& lock_;
};

}  // namespace spanprof::context
