#include "context/thread_context_reader.h"

#include <cstring>

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

ReadStatus ReadOwnContext(ThreadContext& context, spanprof_context* out) {
  constexpr int kTries = 16;
  // No other reader that is active on this thread has the same: it has another frame.
  const char own_frame = 0;
  const uintptr_t mark = reinterpret_cast<uintptr_t>(&own_frame) | 1;
  for (int i = 0; i < kTries; ++i) {
    // First a look, and only then the mark: that of a write which we interrupted must stay.
    if (context.record.checksum.load(std::memory_order_relaxed) == 0) {
      return ReadStatus::kInProgress;
    }
    context.mark.store(mark, std::memory_order_relaxed);
    // Pairs with the writer's fences: a handler that sees a checksum sees its fields.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const uint64_t checksum = context.record.checksum.load(std::memory_order_relaxed);
    if (checksum == 0) return ReadStatus::kInProgress;  // shut down meanwhile, by another thread
    CopyFields(context, out);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // A handler that interrupted us may have written: then the copy is of two contexts.
    if (context.mark.load(std::memory_order_relaxed) != mark) continue;
    return checksum == internal::RecordChecksum(out->span_id, out->root_span_id)
               ? ReadStatus::kOk
               : ReadStatus::kTorn;
  }
  return ReadStatus::kChanged;
}

ReadStatus ReadRunningContext(const ThreadContext& context, const Slot& slot, uint64_t before,
                              spanprof_context* out) {
  CopyFields(context, out);
  // Pairs with the writer's release fence behind its opening store: if a field above came from a
  // later write, or from a later owner of the object, the load below sees another word.
  std::atomic_thread_fence(std::memory_order_acquire);
  return slot.word.load(std::memory_order_relaxed) == before ? ReadStatus::kOk
                                                             : ReadStatus::kChanged;
}

}  // namespace spanprof::context
