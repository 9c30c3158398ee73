// The operations on the calling thread's context that the inline fast path leaves to the library.
// Signal-safe once the thread is attached: no lock, no allocation, no system call.

#include <cstring>
#include <errno.h>

#include "context/core.h"
#include "context/counters.h"
#include "context/otel_attributes.h"
#include "context/thread_locals.h"

namespace spanprof::context {

using internal::kAttentionTrace;
using internal::ThreadContext;

// Records how long a write took, when asked to.
class Core::TimedWrite {
 public:
  TimedWrite(Core& core, const ThreadContext& context)
      : core_(core),
        timed_((context.attention.load(std::memory_order_relaxed) & internal::kAttentionTimed) !=
               0),
        start_(timed_ ? Ticks() : 0) {}
  ~TimedWrite() {
    if (timed_) core_.write_latency_.Record(Ticks() - start_);
  }
  TimedWrite(const TimedWrite&) = delete;
  TimedWrite& operator=(const TimedWrite&) = delete;

 private:
  Core& core_;
  const bool timed_;
  const uint64_t start_;
};

namespace {

// The write will leave a context with a trace, or one without.
void SetHasTrace(internal::OpenWrite& write, bool has_trace) {
  write.attention =
      has_trace ? write.attention | kAttentionTrace : write.attention & ~kAttentionTrace;
}

uint64_t SpanId(const ThreadContext& context) {
  return context.record.span_id.load(std::memory_order_relaxed);
}

uint64_t RootSpanId(const ThreadContext& context) {
  return context.record.root_span_id.load(std::memory_order_relaxed);
}

}  // namespace

ThreadContext* Core::CurrentThread(uintptr_t stack_pointer) {
  ThreadContext* context = spanprof_thread_v1;
  if (IsWritable(*context) && IsOfThisGeneration(*context)) return context;
  return AttachCurrentThread(stack_pointer);
}

void Core::Set(uint64_t span_id, uint64_t root_span_id) { SetTrace(0, 0, span_id, root_span_id); }

void Core::SetTrace(uint64_t trace_id_high, uint64_t trace_id_low, uint64_t span_id,
                    uint64_t root_span_id) {
  ThreadContext* context = CurrentThread(internal::StackPointer());
  if (context == nullptr) return;
  const TimedWrite timed(*this, *context);
  internal::OpenWrite write = BeginWrite(*context);
  SetHasTrace(write, (trace_id_high | trace_id_low) != 0);
  WriteIds(*context, write, span_id, root_span_id);
  WriteTrace(*context, write, trace_id_high, trace_id_low, 0);
  FinishWrite(*context, write, span_id, root_span_id);
}

int Core::SetTag(unsigned slot, std::string_view value) {
  if (value.empty()) return SetTagId(slot, 0);
  if (!initialized()) return -ENODEV;
  const uint32_t id = dictionary_.Intern(value);
  return id == 0 ? -ENOSPC : SetTagId(slot, id);
}

int Core::SetTagId(unsigned slot, uint32_t id) {
  if (!initialized()) return -ENODEV;
  if (slot >= configuration()->attribute_names.size() ||
      (id != 0 && dictionary_.Find(id).empty())) {
    Count(Counter::kUnknownTag);
    return -EINVAL;
  }
  ThreadContext* context = CurrentThread(internal::StackPointer());
  if (context == nullptr) return -EBUSY;
  const TimedWrite timed(*this, *context);
  const internal::OpenWrite write = BeginWrite(*context);
  internal::StoreTag(context->record, slot, id);
  if (write.slot != nullptr) WriteTagAttributes(*context, dictionary_);
  FinishWrite(*context, write, SpanId(*context), RootSpanId(*context));
  return 0;
}

void Core::WriteAll(ThreadContext& context, const spanprof_context& next) {
  internal::OpenWrite write = BeginWrite(context);
  const bool had_trace = (write.attention & kAttentionTrace) != 0;
  const bool has_trace = (next.trace_id_high | next.trace_id_low) != 0 || next.trace_flags != 0;
  SetHasTrace(write, has_trace);
  WriteIds(context, write, next.span_id, next.root_span_id);
  if (had_trace || has_trace) {
    WriteTrace(context, write, next.trace_id_high, next.trace_id_low, next.trace_flags);
  }
  uint64_t changed = 0;
  for (unsigned i = 0; i < internal::kTagCount / 2; ++i) {
    uint64_t pair;
    memcpy(&pair, &next.tags[2 * i], sizeof pair);
    changed |= context.record.tag_pairs[i].load(std::memory_order_relaxed) ^ pair;
    context.record.tag_pairs[i].store(pair, std::memory_order_relaxed);
  }
  if (changed != 0 && write.slot != nullptr) WriteTagAttributes(context, dictionary_);
  FinishWrite(context, write, next.span_id, next.root_span_id);
}

int Core::Update(const spanprof_context& next) {
  if (!initialized()) return -ENODEV;
  const size_t attributes = configuration()->attribute_names.size();
  for (unsigned i = 0; i < internal::kTagCount; ++i) {
    if (next.tags[i] == 0) continue;
    if (i >= attributes || dictionary_.Find(next.tags[i]).empty()) {
      Count(Counter::kUnknownTag);
      return -EINVAL;
    }
  }
  ThreadContext* context = CurrentThread(internal::StackPointer());
  if (context == nullptr) return -EBUSY;
  const TimedWrite timed(*this, *context);
  WriteAll(*context, next);
  return 0;
}

void Core::Swap(const spanprof_context* in, spanprof_context* out) {
  static constexpr spanprof_context kNone = {sizeof(spanprof_context), 0, 0, 0, 0, 0, {}};
  ThreadContext* context = CurrentThread(internal::StackPointer());
  if (context == nullptr) {
    if (out != nullptr) *out = kNone;
    return;
  }
  const TimedWrite timed(*this, *context);
  if (out != nullptr) {
    out->size = sizeof *out;
    if (ReadOwnContext(*context, out) != ReadStatus::kOk) *out = kNone;
  }
  WriteAll(*context, in == nullptr ? kNone : *in);
}

void Core::Clear() {
  ThreadContext* context = CurrentThread(internal::StackPointer());
  if (context == nullptr) return;
  const TimedWrite timed(*this, *context);
  WriteAll(*context, {sizeof(spanprof_context), 0, 0, 0, 0, 0, {}});
}

int Core::GetByTid(int tid, spanprof_context* out) const {
  if (!initialized()) return -ENODEV;
  if (!publishes_outside()) return -ENOTSUP;
  if (tid <= 0) return -ESRCH;
  const auto wanted = static_cast<uint32_t>(tid);
  constexpr int kTries = 64;
  for (int i = 0; i < kTries; ++i) {
    // First the word, then whose object it is: see ReadRunningContext. A thread whose slot belongs
    // to another has its own, inside the object.
    const internal::Slot* slot = &slots_.SlotOf(wanted);
    uint64_t before = slot->word.load(std::memory_order_acquire);
    if (internal::SlotOwner(before) != wanted) {
      const ThreadContext* context = FindThread(wanted);
      if (context == nullptr) {
        Count(Counter::kReadNoThread);
        return -ESRCH;
      }
      slot = &context->own_slot;
      before = slot->word.load(std::memory_order_acquire);
      if (internal::SlotOwner(before) != wanted) {
        Count(Counter::kReadForeignOwner);
        return -ESRCH;
      }
    }
    if (internal::SlotIsBusy(before)) {
      Count(Counter::kReadInProgress);
      continue;
    }
    const ThreadContext* context = FindThread(wanted);
    if (context == nullptr) return -ESRCH;
    // With an own slot, the object must be the one that it lies in.
    if (slot == &slots_.SlotOf(wanted) || slot == &context->own_slot) {
      if (ReadRunningContext(*context, *slot, before, out) == ReadStatus::kOk) return 0;
    }
    Count(Counter::kReadChanged);
  }
  return -EAGAIN;
}

int Core::SetEndpoint(uint64_t root_span_id, std::string_view name) {
  if (!initialized()) return -ENODEV;
  if (root_span_id == 0 || name.empty()) return -EINVAL;
  const uint32_t endpoint = dictionary_.Intern(name);
  if (endpoint == 0) return -ENOSPC;
  endpoints_.Set(root_span_id, endpoint);
  return 0;
}

}  // namespace spanprof::context
