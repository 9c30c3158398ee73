#pragma once

// SIGNAL-SAFE (Reserve, Commit). Where handlers put samples: memory that is there before the first
// signal, filled without locks, emptied by one thread while handlers go on.
//
// There are two banks. Handlers fill the active one; the drainer makes the other one active, waits
// until no handler is left in the old one, and reads it in peace.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <spanprof/context.h>

namespace spanprof::sampling {

enum class ContextStatus : uint8_t {
  kNone,        // the thread has published nothing, or cleared it
  kPresent,     // RawSample::context is what was active
  kInProgress,  // it was just being changed
  kTorn,
};

// Behind it lie `depth` program counters, the innermost first.
struct RawSample {
  uint32_t bytes;  // to the next sample; also when this one was given up
  std::atomic<uint32_t> committed;
  uint64_t monotonic_ns;
  uint64_t count;  // samples that this one stands for
  uint64_t value;  // nanoseconds
  uint32_t tid;
  uint16_t depth;
  uint8_t kind;          // profile::SampleKind
  uint8_t state;         // profile::ThreadState
  uint8_t walk_failure;  // WalkFailure
  bool complete;
  ContextStatus context_status;
  char thread_name[17];
  spanprof_context context;

  uint64_t* pcs() { return reinterpret_cast<uint64_t*>(this + 1); }
  const uint64_t* pcs() const { return reinterpret_cast<const uint64_t*>(this + 1); }
};
static_assert(sizeof(RawSample) % 8 == 0);

class SampleBuffer {
 public:
  // False: no memory. Each bank gets half of `bytes`. Once; later calls keep what is there.
  bool Create(size_t bytes);
  ~SampleBuffer();

  // A place for one sample of at most `max_depth` frames. Null, and counted: the bank is full.
  // Every reservation must be followed by Commit, which may be given a smaller depth.
  class Reservation {
   public:
    RawSample* operator->() const { return sample; }
    explicit operator bool() const { return sample != nullptr; }
    RawSample* sample = nullptr;

   private:
    friend class SampleBuffer;
    struct Bank* bank_ = nullptr;
    size_t end_ = 0;
  };
  Reservation Reserve(unsigned max_depth);
  void Commit(const Reservation& reservation, unsigned depth);

  // Calls `visit(const RawSample&)` for every sample that was committed since the last time. One
  // thread at a time. Returns false when a handler still holds the old bank: nothing was read, and
  // the next call will try again.
  template <class Visitor>
  bool Drain(Visitor visit) {
    const char* begin = nullptr;
    const char* end = nullptr;
    if (!Rotate(&begin, &end)) return false;
    while (begin < end) {
      const auto* sample = reinterpret_cast<const RawSample*>(begin);
      if (sample->committed.load(std::memory_order_acquire) != 0) visit(*sample);
      begin += sample->bytes;
    }
    Clear();
    return true;
  }

  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  bool Rotate(const char** begin, const char** end);
  void Clear();

  struct Bank* banks_ = nullptr;
  size_t mapped_bytes_ = 0;
  std::atomic<uint32_t> active_{0};
  bool rotated_ = false;  // the inactive bank has not been read yet
  std::atomic<uint64_t> dropped_{0};
};

}  // namespace spanprof::sampling
