// SIGNAL-SAFE (Find, Owns).

#include "sampling/sampled_threads.h"

#include <new>

#include "context/platform.h"

namespace spanprof::sampling {

bool SampledThreads::Create() {
  if (threads_ != nullptr) return true;
  id_limit_ = context::ThreadIdLimit();
  auto* index = static_cast<std::atomic<uint32_t>*>(
      context::MapAnonymous((size_t{id_limit_} + 1) * sizeof(uint32_t)));
  auto* threads =
      static_cast<SampledThread*>(context::MapAnonymous(sizeof(SampledThread) * kMaxThreads));
  auto* timeouts =
      static_cast<CallTimeout*>(context::MapAnonymous(sizeof(CallTimeout) * kCallTimeouts));
  if (index == nullptr || threads == nullptr || timeouts == nullptr) return false;
  call_timeouts_ = timeouts;
  index_by_tid_ = index;
  threads_ = threads;
  return true;
}

SampledThread* SampledThreads::Add(uint32_t tid) {
  if (tid == 0 || tid > id_limit_) return nullptr;
  if (SampledThread* thread = Find(tid)) return thread;
  uint32_t index = 0;
  if (size_ == used_) {
    if (used_ == kMaxThreads) return nullptr;
    index = used_++;
  } else {
    index = maybe_free_;
    while (threads_[index].tid.load(std::memory_order_relaxed) != 0) index = (index + 1) % used_;
    maybe_free_ = (index + 1) % used_;
  }
  SampledThread* thread = new (&threads_[index]) SampledThread();
  thread->tid.store(tid, std::memory_order_release);
  index_by_tid_[tid].store(index + 1, std::memory_order_release);
  ++size_;
  return thread;
}

void SampledThreads::Remove(SampledThread& thread) {
  index_by_tid_[thread.tid.load(std::memory_order_relaxed)].store(0, std::memory_order_release);
  thread.tid.store(0, std::memory_order_release);
  maybe_free_ = static_cast<uint32_t>(&thread - threads_);
  --size_;
}

SampledThread* SampledThreads::Find(uint32_t tid) const {
  if (tid > id_limit_) return nullptr;
  const uint32_t index = index_by_tid_[tid].load(std::memory_order_acquire);
  return index == 0 ? nullptr : &threads_[index - 1];
}

bool SampledThreads::Owns(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const auto begin = reinterpret_cast<uintptr_t>(threads_);
  return address >= begin && address < begin + sizeof(SampledThread) * kMaxThreads &&
         (address - begin) % sizeof(SampledThread) == 0;
}

}  // namespace spanprof::sampling
