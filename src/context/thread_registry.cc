#include "context/thread_registry.h"

#include <cstring>

#include "context/platform.h"
#include "context/process_state.h"

namespace spanprof::context {

using internal::ThreadContext;

namespace {

constexpr size_t kPagesPerChunk = 16;
constexpr size_t kObjectPagesPerChunk = 14;

void EraseObject(ThreadContext& context) {
  // Whoever reads a field of the new owner also sees that the old owner's slot word has changed:
  // pairs with the acquire fence of a read by tid.
  std::atomic_thread_fence(std::memory_order_release);
  context.record.checksum.store(0, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  context.record.span_id.store(0, std::memory_order_relaxed);
  context.record.root_span_id.store(0, std::memory_order_relaxed);
  for (auto& pair : context.record.tag_pairs) pair.store(0, std::memory_order_relaxed);
  context.trace_id_high.store(0, std::memory_order_relaxed);
  context.trace_id_low.store(0, std::memory_order_relaxed);
  context.trace_flags.store(0, std::memory_order_relaxed);
  context.attention.store(0, std::memory_order_relaxed);
  context.slot.store(nullptr, std::memory_order_relaxed);
  context.slot_word.store(0, std::memory_order_relaxed);
  context.otel_attributes_size.store(0, std::memory_order_relaxed);
  internal::StoreRecord32(context.otel_record + internal::kOtelValidOffset, 0);
}

}  // namespace

bool ThreadRegistry::Create() {
  if (by_tid_.load(std::memory_order_acquire) != nullptr) return true;
  objects_bytes_ = kObjectPagesPerChunk * PageSize();
  chunk_bytes_ = kPagesPerChunk * PageSize();
  objects_per_chunk_ = static_cast<uint32_t>(objects_bytes_ / sizeof(ThreadContext));
  static_assert(kObjectPagesPerChunk * 4096 / sizeof(ThreadContext) * sizeof(Shelter) +
                    sizeof(Chunk) <=
                (kPagesPerChunk - kObjectPagesPerChunk) * 4096);
  id_limit_ = ThreadIdLimit();
  const size_t bytes = (size_t{id_limit_} + 1) * sizeof(ThreadContext*);
  void* memory = MapAnonymous(bytes);
  if (memory == nullptr) return false;
  WipeOnFork(memory, bytes);
  by_tid_.store(static_cast<std::atomic<ThreadContext*>*>(memory), std::memory_order_release);
  return true;
}

ThreadContext* ThreadRegistry::ObjectsOf(Chunk* chunk) const {
  return reinterpret_cast<ThreadContext*>(reinterpret_cast<char*>(chunk) - objects_bytes_);
}

ThreadRegistry::Chunk* ThreadRegistry::ChunkOf(ThreadContext& context) const {
  const uintptr_t base = reinterpret_cast<uintptr_t>(&context) & ~(uintptr_t{chunk_bytes_} - 1);
  return reinterpret_cast<Chunk*>(base + objects_bytes_);
}

ThreadRegistry::Shelter& ThreadRegistry::ShelterOf(ThreadContext& context) const {
  Chunk* chunk = ChunkOf(context);
  auto* shelters = reinterpret_cast<Shelter*>(chunk + 1);
  return shelters[&context - ObjectsOf(chunk)];
}

ThreadRegistry::Chunk* ThreadRegistry::AddChunk() {
  char* memory = static_cast<char*>(MapAligned(chunk_bytes_, chunk_bytes_));
  if (memory == nullptr) return nullptr;
  WipeOnFork(memory, objects_bytes_);
  auto* chunk = reinterpret_cast<Chunk*>(memory + objects_bytes_);
  Chunk* newest = chunks_.load(std::memory_order_relaxed);
  chunk->next = newest;
  chunk->number = newest == nullptr ? 0 : newest->number + 1;
  // One store makes the chunk part of the list: a fork sees it whole or not at all.
  chunks_.store(chunk, std::memory_order_release);
  return chunk;
}

void ThreadRegistry::AppendDetached(ThreadContext& context) {
  ProcessState* state = CurrentProcessState();
  context.next_free.store(nullptr, std::memory_order_relaxed);
  ThreadContext* tail = state->free_tail.load(std::memory_order_relaxed);
  if (tail == nullptr) {
    state->free_head.store(&context, std::memory_order_relaxed);
  } else {
    tail->next_free.store(&context, std::memory_order_relaxed);
  }
  state->free_tail.store(&context, std::memory_order_relaxed);
}

ThreadContext* ThreadRegistry::TakeDetached(uint32_t tid) {
  ProcessState* state = CurrentProcessState();
  // Oldest first. A thread may still run its last destructors, and another copy of the library in
  // the process may still hold a pointer to its object; a process's first thread stays as long as
  // any does. Such objects go to the end again.
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    ThreadContext* context = state->free_head.load(std::memory_order_relaxed);
    if (context == nullptr) return nullptr;
    ThreadContext* next = context->next_free.load(std::memory_order_relaxed);
    state->free_head.store(next, std::memory_order_relaxed);
    if (next == nullptr) state->free_tail.store(nullptr, std::memory_order_relaxed);
    context->next_free.store(nullptr, std::memory_order_relaxed);
    const uint32_t last_tid = context->tid.load(std::memory_order_relaxed);
    if (last_tid == tid || !ThreadExists(last_tid)) return context;
    AppendDetached(*context);
    if (next == nullptr) return nullptr;
  }
  return nullptr;
}

ThreadContext* ThreadRegistry::TakeUnused() {
  ProcessState* state = CurrentProcessState();
  for (;;) {
    const uint32_t index = state->next_unused.load(std::memory_order_relaxed);
    const uint32_t chunk_number = index / objects_per_chunk_;
    Chunk* chunk = chunks_.load(std::memory_order_relaxed);
    if (chunk == nullptr || chunk->number < chunk_number) {
      chunk = AddChunk();
      if (chunk == nullptr) return nullptr;
    }
    while (chunk->number != chunk_number) chunk = chunk->next;
    state->next_unused.store(index + 1, std::memory_order_relaxed);
    ThreadContext& context = ObjectsOf(chunk)[index % objects_per_chunk_];
    // In a forked child the forking thread goes on with its object, wherever that is.
    if (context.tid.load(std::memory_order_relaxed) == 0) return &context;
  }
}

ThreadContext* ThreadRegistry::TakeObject(uint32_t tid) {
  ThreadContext* context = TakeDetached(tid);
  return context != nullptr ? context : TakeUnused();
}

ThreadContext* ThreadRegistry::Attach(uint32_t tid) {
  if (tid == 0 || tid > id_limit_) return nullptr;
  WipedLock lock(CurrentProcessState()->registry_lock);
  ThreadContext* context =
      by_tid_.load(std::memory_order_relaxed)[tid].load(std::memory_order_relaxed);
  if (context == nullptr) context = TakeObject(tid);
  if (context == nullptr) return nullptr;
  EraseObject(*context);
  context->tid.store(tid, std::memory_order_relaxed);
  return context;
}

void ThreadRegistry::AttachInForkedChild(ThreadContext& context, uint32_t tid) {
  WipedLock lock(CurrentProcessState()->registry_lock);
  EraseObject(context);
  context.tid.store(tid, std::memory_order_relaxed);
}

void ThreadRegistry::Publish(ThreadContext& context) {
  const uint32_t tid = context.tid.load(std::memory_order_relaxed);
  // Release: pairs with the acquire in Find.
  by_tid_.load(std::memory_order_relaxed)[tid].store(&context, std::memory_order_release);
}

void ThreadRegistry::Detach(ThreadContext& context) {
  WipedLock lock(CurrentProcessState()->registry_lock);
  const uint32_t tid = context.tid.load(std::memory_order_relaxed);
  by_tid_.load(std::memory_order_relaxed)[tid].store(nullptr, std::memory_order_release);
  context.registered.store(0, std::memory_order_release);
  AppendDetached(context);
}

ThreadContext* ThreadRegistry::Find(uint32_t tid) const {
  auto* by_tid = by_tid_.load(std::memory_order_acquire);
  if (by_tid == nullptr || tid > id_limit_) return nullptr;
  return by_tid[tid].load(std::memory_order_acquire);
}

void ThreadRegistry::LeaveOldObjectsAlone() {
  const Chunk* newest = chunks_.load(std::memory_order_relaxed);
  const uint32_t existing = newest == nullptr ? 0 : (newest->number + 1) * objects_per_chunk_;
  CurrentProcessState()->next_unused.store(existing, std::memory_order_relaxed);
}

void ThreadRegistry::WipeAllObjects() {
  for (Chunk* chunk = chunks_.load(std::memory_order_relaxed); chunk != nullptr;
       chunk = chunk->next) {
    memset(static_cast<void*>(ObjectsOf(chunk)), 0, objects_bytes_);
  }
  ZeroMapping(by_tid_.load(std::memory_order_relaxed),
              (size_t{id_limit_} + 1) * sizeof(ThreadContext*));
  memset(static_cast<void*>(CurrentProcessState()), 0, sizeof(ProcessState));
}

}  // namespace spanprof::context
