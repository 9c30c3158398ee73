// The threads that the sampler knows of: those that announce themselves and those that a scan
// finds.

#include <algorithm>
#include <cstdlib>
#include <dirent.h>
#include <optional>
#include <vector>

#include "context/platform.h"
#include "sampling/sampler.h"
#include "sampling/stack_bounds.h"
#include "sampling/threads_lock.h"

namespace spanprof::sampling {
namespace {

// Until a thread's stack is known, walking it costs a system call a frame: so it is looked for soon
// after a thread was found, then less and less often.
constexpr uint64_t kFirstLearnIntervalNs = 2'000'000;
constexpr uint64_t kLastLearnIntervalNs = 100'000'000;

}  // namespace

void Sampler::IgnoreCurrentThread() {
  const uint32_t tid = context::CurrentThreadId();
  OnThreadEnd();  // a preloaded pthread_create may have announced it
  for (std::atomic<uint32_t>& own : own_tids_) {
    uint32_t expected = 0;
    const bool gone = own != 0 && !context::ThreadExists(own);
    if (gone) expected = own;
    if (own.compare_exchange_strong(expected, tid)) return;
  }
}

void Sampler::StopIgnoringCurrentThread() {
  for (std::atomic<uint32_t>& own : own_tids_) {
    uint32_t expected = context::CurrentThreadId();
    own.compare_exchange_strong(expected, 0);
  }
}

bool Sampler::IsOwnThread(uint32_t tid) const {
  for (const std::atomic<uint32_t>& own : own_tids_) {
    if (own.load(std::memory_order_relaxed) == tid) return true;
  }
  return false;
}

uint64_t Sampler::OwnThreadsCpu() const {
  uint64_t used = 0;
  for (const std::atomic<uint32_t>& own : own_tids_) {
    if (own != 0) used += ThreadCpuNanoseconds(own);
  }
  return used;
}

void Sampler::ScanThreads() {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return;
  {
    const ThreadsLock lock(threads_lock_);  // threads that begin meanwhile read it
    ++scan_;
  }
  // In portions: a thread that starts or ends meanwhile waits for the lock.
  constexpr size_t kPortion = 64;
  std::vector<uint32_t> tids;
  while (const dirent* entry = readdir(tasks)) {
    const auto tid = static_cast<uint32_t>(strtoul(entry->d_name, nullptr, 10));
    if (tid == 0 || IsOwnThread(tid)) continue;
    tids.push_back(tid);
    if (tids.size() < kPortion) continue;
    LookAtThreads(tids);
    tids.clear();
  }
  closedir(tasks);
  LookAtThreads(tids);
  const ThreadsLock lock(threads_lock_);
  threads_.ForEach([this](SampledThread& thread) {
    if (thread.scan != scan_) RemoveThread(thread);
  });
}

void Sampler::LookAtThreads(const std::vector<uint32_t>& tids) {
  const ThreadsLock lock(threads_lock_);
  for (const uint32_t tid : tids) {
    const uint64_t cpu = ThreadCpuNanoseconds(tid);
    if (cpu == 0) continue;  // it has gone since
    SampledThread* thread = threads_.Find(tid);
    if (thread == nullptr) {
      AddThread(tid, false);
      thread = threads_.Find(tid);
      LearnStackBoundsSoon();
    }
    if (thread == nullptr) continue;
    thread->scan = scan_;
    thread->cpu_ns_last_seen = cpu;
  }
}

void Sampler::AddThread(uint32_t tid, bool from_its_start) {
  SampledThread* thread = threads_.Add(tid);
  if (thread == nullptr) {
    Count(kThreadsOverLimit);
    return;
  }
  thread->scan = scan_;
  thread->cpu_ns_when_found = from_its_start ? 0 : ThreadCpuNanoseconds(tid);
  thread->cpu_ns_last_seen = thread->cpu_ns_when_found;
  // Threads that were there before us owe nothing; the others were running unseen.
  if (scan_ > 1) late_cpu_ns_.fetch_add(thread->cpu_ns_when_found, std::memory_order_relaxed);
  if (options_.cpu_interval_ns != 0 && cpu_clock_.Arm(*thread) == CpuClock::Source::kNone) {
    Count(kThreadNotArmed);
  }
  if (wall_by_timers_) ArmWallTimer(*thread);
  if (wall_rests_.exchange(false)) wake_up_.Increment();
}

void Sampler::RemoveThread(SampledThread& thread) {
  cpu_clock_.Disarm(thread);
  sampled_cpu_ns_.fetch_add(thread.cpu_ns_last_seen - thread.cpu_ns_when_found,
                            std::memory_order_relaxed);
  threads_.Remove(thread);
}

void Sampler::OnThreadStart() {
  if (!running()) return;
  const uint32_t tid = context::CurrentThreadId();
  const StackBounds stack = OwnStackBounds(tid);
  const ThreadsLock lock(threads_lock_);
  if (!running() || IsOwnThread(tid)) return;
  // A scan has found it already, or a namesake went without telling.
  if (SampledThread* thread = threads_.Find(tid)) RemoveThread(*thread);
  AddThread(tid, true);
  if (SampledThread* thread = threads_.Find(tid)) {
    thread->stack_low.store(stack.low, std::memory_order_relaxed);
    thread->stack_high.store(stack.high, std::memory_order_release);
  }
}

void Sampler::OnThreadEnd() {
  if (!running()) return;
  const ThreadsLock lock(threads_lock_);
  const uint32_t tid = context::CurrentThreadId();
  if (SampledThread* thread = threads_.Find(tid); running() && thread != nullptr) {
    thread->cpu_ns_last_seen = ThreadCpuNanoseconds(tid);
    RemoveThread(*thread);
  }
}

void Sampler::LearnStackBounds() {
  std::optional<ReadableMappings> mappings;
  const ThreadsLock lock(threads_lock_);
  threads_.ForEach([&mappings](SampledThread& thread) {
    const uint64_t seen = thread.seen_stack_pointer.load(std::memory_order_relaxed);
    if (seen == 0 || thread.stack_high.load(std::memory_order_relaxed) != 0) return;
    if (!mappings) mappings.emplace();
    const StackBounds stack = mappings->StackAround(seen);
    thread.stack_low.store(stack.low, std::memory_order_relaxed);
    thread.stack_high.store(stack.high, std::memory_order_release);
  });
  learn_interval_ns_ = std::min(2 * learn_interval_ns_, kLastLearnIntervalNs);
  next_learn_ns_ = NextMultiple(MonotonicNanoseconds(), learn_interval_ns_);
}

void Sampler::LearnStackBoundsSoon() {
  learn_interval_ns_ = kFirstLearnIntervalNs;
  next_learn_ns_ = std::min(next_learn_ns_, MonotonicNanoseconds() + learn_interval_ns_);
}

}  // namespace spanprof::sampling
