// Threads coming and going, and fork.

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "context/core.h"
#include "context/core_election.h"
#include "context/otel_attributes.h"
#include "context/platform.h"
#include "context/process_state.h"
#include "context/thread_locals.h"

namespace spanprof::context {

using internal::Slot;
using internal::ThreadContext;

namespace {

pthread_key_t exit_key;

// In ProcessState::pid while a forked child finds out that it is one.
constexpr uint32_t kBecomingThisProcess = 0xFFFFFFFF;

// No signal handler's frames begin nearer to what it interrupted: the kernel puts the red zone and
// the registers in between (at least 1144 bytes on x86-64, 4 KiB on arm64).
constexpr uintptr_t kSmallestSignalFrame = 1024;

// Behind the stack of every thread but the first.
uintptr_t ThreadDescriptor() {
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
  return reinterpret_cast<uintptr_t>(__builtin_thread_pointer());
#else
  return 0;
#endif
}

// Whether the write that holds the object can never go on: a signal handler that interrupted it
// left by longjmp, or a runtime says so. Called by a thread that found its own object busy, so
// either we are inside a handler that runs on top of the writer, or the writer's frame is gone.
bool WriteWasAbandoned(const ThreadContext& context, uintptr_t stack_pointer) {
  const uintptr_t writer = context.mark.load(std::memory_order_relaxed);
  if (writer == internal::kAbandonedMark) return true;
  if (writer == 0 || writer % 2 != 0) return false;  // a reader's mark says nothing of the writer
  if (internal::IsManagedMark(writer)) return false;
  stack_t alternate = {};
  if (sigaltstack(nullptr, &alternate) != 0) return false;
  // On the alternate stack nothing can be told from addresses.
  if ((alternate.ss_flags & SS_ONSTACK) != 0) return false;
  const uintptr_t low = reinterpret_cast<uintptr_t>(alternate.ss_sp);
  const bool writer_was_on_alternate =
      (alternate.ss_flags & SS_DISABLE) == 0 && writer >= low && writer < low + alternate.ss_size;
  if (writer_was_on_alternate) return true;
  // With SS_AUTODISARM a handler sees no alternate stack while it runs on one. Such a stack may lie
  // above the thread's own, which ends where the thread's descriptor begins.
  const uintptr_t descriptor = ThreadDescriptor();
  if (writer < descriptor && stack_pointer > descriptor) return false;
  return stack_pointer + kSmallestSignalFrame > writer;
}

void MakeWritable(ThreadContext& context) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  context.record.checksum.store(internal::RecordChecksum(0, 0), std::memory_order_relaxed);
}

}  // namespace

struct ForkHandlers {
  static void Prepare() { ThisCore().ShelterForFork(); }
  static void InParent() { ThisCore().LeaveShelter(); }
  static void InChild() { ThisCore().ContinueInForkedChild(true); }
};

Result<void> Core::InstallHandlers() {
  if (handlers_installed_.load(std::memory_order_relaxed)) return {};
  if (const int error = pthread_key_create(&exit_key, &Core::OnThreadExit); error != 0) {
    return Fail(error, "the process has used up its thread-specific keys (PTHREAD_KEYS_MAX)");
  }
  if (const int error =
          pthread_atfork(&ForkHandlers::Prepare, &ForkHandlers::InParent, &ForkHandlers::InChild);
      error != 0) {
    return Fail(error, "the fork handlers could not be registered");
  }
  handlers_installed_.store(true, std::memory_order_relaxed);
  return {};
}

void Core::RecogniseUnannouncedFork() {
  std::atomic<uint32_t>& pid = CurrentProcessState()->pid;
  uint32_t seen = pid.load(std::memory_order_acquire);
  if (seen != 0 && seen != kBecomingThisProcess &&
      (ForkWipesMemory() || seen == CurrentProcessId())) {
    return;
  }
  const SignalBlocker no_signals;
  // The child may have threads by now: one of them does it, the others wait.
  if (seen != kBecomingThisProcess && pid.compare_exchange_strong(seen, kBecomingThisProcess)) {
    ContinueInForkedChild(false);
  }
  while (pid.load(std::memory_order_acquire) == kBecomingThisProcess) sched_yield();
}

void Core::PrepareThread(ThreadContext& context, uint32_t generation) {
  const uint32_t tid = context.tid.load(std::memory_order_relaxed);
  uint32_t attention = timed_.load(std::memory_order_relaxed) ? internal::kAttentionTimed : 0;
  const bool outside = outside_.load(std::memory_order_acquire);
  if (outside) {
    attention |= internal::kAttentionOutside;
    InitialiseOtelRecord(context);
    Slot* slot = slots_.Claim(tid, context.otel_record);
    if (slot == nullptr) {
      // Unseen in the table, but found by tid inside the process, and through its OTEP record.
      slot = &context.own_slot;
      ResetSlot(*slot, tid);
    }
    context.slot_word.store(slot->word.load(std::memory_order_relaxed), std::memory_order_relaxed);
    context.slot.store(slot, std::memory_order_release);
  }
  context.attention.store(attention, std::memory_order_relaxed);
  context.registered.store(generation, std::memory_order_release);
  registry_.Publish(context);
  SetOtelThreadRecord(outside ? context.otel_record : nullptr);
  MakeWritable(context);
}

ThreadContext* Core::AttachCurrentThread(uintptr_t stack_pointer) {
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  if (generation == 0) return nullptr;
  RecogniseUnannouncedFork();
  ThreadContext* context = spanprof_thread_v1;
  if (context == &exited_thread) {
    Count(Counter::kExitingThreadRefused);
    return nullptr;
  }
  if (IsAttached(context) && context->registered.load(std::memory_order_relaxed) == generation) {
    if (IsWritable(*context)) return context;
    if (!WriteWasAbandoned(*context, stack_pointer)) {
      Count(Counter::kNestedWriteRefused);
      return nullptr;
    }
    Count(Counter::kAbandonedWrite);  // and go on as if the thread were new
  }
  const SignalBlocker no_signals;
  const uint32_t tid = CurrentThreadId();
  WithdrawThread(tid);
  context = registry_.Attach(tid);
  // The key's value is what makes our clean-up run: without it the thread's slot would outlive it.
  if (context == nullptr || pthread_setspecific(exit_key, context) != 0) {
    // Kept for the thread's next call.
    if (context != nullptr) registry_.Publish(*context);
    Count(Counter::kThreadNotAttached);
    return nullptr;
  }
  PrepareThread(*context, generation);
  spanprof_thread_v1 = context;
  return context;
}

void Core::WithdrawThread(uint32_t tid) {
  if (slots_.exists()) slots_.Release(tid);
  ThreadContext* context = registry_.Find(tid);
  if (context != nullptr && internal::SlotOwner(context->own_slot.word) == tid) {
    ResetSlot(context->own_slot, 0);
  }
}

void Core::OnThreadExit(void* context) {
  ThisCore().DetachThread(*static_cast<ThreadContext*>(context));
}

void Core::DetachThread(ThreadContext& context) {
  const SignalBlocker no_signals;
  spanprof_thread_v1 = &exited_thread;
  SetOtelThreadRecord(nullptr);
  const uint32_t tid = context.tid.load(std::memory_order_relaxed);
  Slot* slot = context.slot.load(std::memory_order_relaxed);
  context.record.checksum.store(0, std::memory_order_relaxed);
  // First the slot: while its word is idle, slot and record have to say the same.
  if (slot == &context.own_slot) {
    ResetSlot(*slot, 0);
  } else if (slot != nullptr) {
    slots_.Release(tid);
  }
  internal::StoreRecord32(context.otel_record + internal::kOtelValidOffset, 0);
  registry_.Detach(context);
}

void Core::ShelterForFork() {
  ThreadContext* context = spanprof_thread_v1;
  if (!initialized() || !IsAttached(context)) return;
  ThreadRegistry::Shelter& shelter = registry_.ShelterOf(*context);
  shelter.context.size = sizeof(spanprof_context);
  shelter.occupied = ReadOwnContext(*context, &shelter.context) == ReadStatus::kOk;
}

void Core::LeaveShelter() {
  ThreadContext* context = spanprof_thread_v1;
  if (IsAttached(context)) registry_.ShelterOf(*context).occupied = false;
}

void Core::ContinueInForkedChild(bool announced) {
  if (CurrentProcessState() == nullptr) return;
  const SignalBlocker no_signals;
  // Where fork does not wipe (or only says so, as qemu's user emulation does), whatever other
  // threads had is still there.
  if (announced ? CurrentProcessState()->pid.load(std::memory_order_relaxed) != 0
                : !ForkWipesMemory()) {
    registry_.WipeAllObjects();
  }
  // Unannounced, and perhaps not on the thread that forked: that one still points to its old
  // object, so nobody else may get it.
  if (!announced) registry_.LeaveOldObjectsAlone();
  AnnounceProcessAfterFork();
  const uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (generation != 0 && outside_.load(std::memory_order_relaxed)) {
    slots_.ResetInForkedChild();
    process_context_.RepublishInForkedChild();
  }
  // Release: whoever waits for it may go on.
  CurrentProcessState()->pid.store(CurrentProcessId(), std::memory_order_release);
  if (!announced) Count(Counter::kForkUnannounced);
  ThreadContext* context = spanprof_thread_v1;
  if (generation == 0 || !IsAttached(context)) return;
  registry_.AttachInForkedChild(*context, CurrentThreadId());
  PrepareThread(*context, generation);
  ThreadRegistry::Shelter& shelter = registry_.ShelterOf(*context);
  if (announced && shelter.occupied) WriteAll(*context, shelter.context);
  shelter.occupied = false;
}

}  // namespace spanprof::context
