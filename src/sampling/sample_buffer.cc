// SIGNAL-SAFE (Reserve, Commit).

#include "sampling/sample_buffer.h"

#include <new>
#include <sched.h>

#include <sys/mman.h>

namespace spanprof::sampling {

struct alignas(64) Bank {
  std::atomic<size_t> used{0};
  std::atomic<uint32_t> writers{0};
  char* memory = nullptr;
  size_t capacity = 0;
};

bool SampleBuffer::Create(size_t bytes) {
  // Kept from one run to the next: a late handler may still be in it.
  if (banks_ != nullptr) return true;
  const size_t header = sizeof(Bank) * 2;
  const size_t capacity = bytes / 2 / 64 * 64;
  void* memory = mmap(nullptr, header + 2 * capacity, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  mapped_bytes_ = header + 2 * capacity;
  banks_ = static_cast<Bank*>(memory);
  for (unsigned i = 0; i < 2; ++i) {
    Bank* bank = new (&banks_[i]) Bank();
    bank->memory = static_cast<char*>(memory) + header + i * capacity;
    bank->capacity = capacity;
  }
  return true;
}

SampleBuffer::~SampleBuffer() {
  if (banks_ != nullptr) munmap(banks_, mapped_bytes_);
}

SampleBuffer::Reservation SampleBuffer::Reserve(unsigned max_depth) {
  Reservation reservation;
  const size_t bytes = sizeof(RawSample) + max_depth * sizeof(uint64_t);
  // The drainer may make the other bank active between our look and our announcement; then it does
  // not know of us. Sequentially consistent on both sides: one of us sees the other.
  Bank* bank = nullptr;
  for (int i = 0; i < 3; ++i) {
    const uint32_t active = active_.load(std::memory_order_seq_cst);
    Bank* candidate = &banks_[active];
    candidate->writers.fetch_add(1, std::memory_order_seq_cst);
    if (active_.load(std::memory_order_seq_cst) == active) {
      bank = candidate;
      break;
    }
    candidate->writers.fetch_sub(1, std::memory_order_release);
  }
  if (bank != nullptr) {
    size_t used = bank->used.load(std::memory_order_relaxed);
    while (used + bytes <= bank->capacity) {
      if (!bank->used.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed))
        continue;
      reservation.sample = reinterpret_cast<RawSample*>(bank->memory + used);
      reservation.bank_ = bank;
      reservation.end_ = used + bytes;
      reservation.sample->bytes = static_cast<uint32_t>(bytes);
      reservation.sample->committed.store(0, std::memory_order_relaxed);
      return reservation;
    }
    bank->writers.fetch_sub(1, std::memory_order_release);
  }
  dropped_.fetch_add(1, std::memory_order_relaxed);
  return reservation;
}

void SampleBuffer::Commit(const Reservation& reservation, unsigned depth) {
  RawSample* sample = reservation.sample;
  Bank* bank = reservation.bank_;
  sample->depth = static_cast<uint16_t>(depth);
  const size_t start = reservation.end_ - sample->bytes;
  const size_t needed = sizeof(RawSample) + depth * sizeof(uint64_t);
  // Give back what was not needed, if nobody came after us.
  size_t end = reservation.end_;
  if (bank->used.compare_exchange_strong(end, start + needed, std::memory_order_relaxed)) {
    sample->bytes = static_cast<uint32_t>(needed);
  }
  sample->committed.store(1, std::memory_order_release);
  bank->writers.fetch_sub(1, std::memory_order_release);
}

bool SampleBuffer::Rotate(const char** begin, const char** end) {
  const uint32_t active = active_.load(std::memory_order_relaxed);
  if (!rotated_) {
    active_.store(1 - active, std::memory_order_seq_cst);
    rotated_ = true;
  }
  Bank& old = banks_[1 - active_.load(std::memory_order_relaxed)];
  // A handler is in there for microseconds, unless its thread was preempted.
  for (int i = 0; old.writers.load(std::memory_order_seq_cst) != 0; ++i) {
    if (i == 1000) return false;
    sched_yield();
  }
  *begin = old.memory;
  *end = old.memory + old.used.load(std::memory_order_acquire);
  return true;
}

void SampleBuffer::Clear() {
  banks_[1 - active_.load(std::memory_order_relaxed)].used.store(0, std::memory_order_relaxed);
  rotated_ = false;
}

}  // namespace spanprof::sampling
