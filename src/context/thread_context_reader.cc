#include "context/thread_context_reader.h"

#include <cstring>

#include "context/counters.h"

namespace spanprof::context {

using internal::Slot;
using internal::ThreadContext;

namespace {

void CopyFields(const ThreadContext& context, spanprof_context* out) {
  out->span_id = context.record.span_id.load(std::memory_order_relaxed);
  out->root_span_id = context.record.root_span_id.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < internal::kTagCount / 2; ++i) {
    const uint64_t pair = context.record.tag_pairs[i].load(std::memory_order_relaxed);
    memcpy(&out->tags[2 * i], &pair, sizeof pair);
  }
  out->trace_id_high = context.trace_id_high.load(std::memory_order_relaxed);
  out->trace_id_low = context.trace_id_low.load(std::memory_order_relaxed);
  out->trace_flags = context.trace_flags.load(std::memory_order_relaxed);
}

}  // namespace

ReadStatus ReadOwnContext(const ThreadContext& context, spanprof_context* out) {
  const uint64_t checksum = context.record.checksum.load(std::memory_order_relaxed);
  if (checksum == 0) return ReadStatus::kInProgress;
  // Pairs with the writer's fences: a handler that sees a checksum sees its fields.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  CopyFields(context, out);
  if (checksum != internal::RecordChecksum(out->span_id, out->root_span_id)) {
    return ReadStatus::kTorn;
  }
  return ReadStatus::kOk;
}

ReadStatus ReadRunningContext(const ThreadContext& context, uint32_t tid, spanprof_context* out) {
  constexpr int kTries = 64;
  ReadStatus status = ReadStatus::kInProgress;
  for (int i = 0; i < kTries; ++i) {
    const Slot* slot = context.slot.load(std::memory_order_acquire);
    if (slot == nullptr) return ReadStatus::kNotOwner;
    // Acquire: pairs with the writer's closing release store.
    const uint64_t before = slot->word.load(std::memory_order_acquire);
    if (internal::SlotOwner(before) != tid) return ReadStatus::kNotOwner;
    if (internal::SlotIsBusy(before)) {
      Count(Counter::kReadInProgress);
      status = ReadStatus::kInProgress;
      continue;
    }
    CopyFields(context, out);
    // Pairs with the writer's release fence behind its opening store: if a field above came from a
    // later write, the load below sees that write's word.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot->word.load(std::memory_order_relaxed) == before) return ReadStatus::kOk;
    Count(Counter::kReadChanged);
    status = ReadStatus::kChanged;
  }
  return status;
}

}  // namespace spanprof::context
