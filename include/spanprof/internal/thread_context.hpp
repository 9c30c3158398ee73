#pragma once

// The per-thread object behind every context call, and the one implementation of its write
// protocol. Applications use context.h or context.hpp; this header is what both are made of.
//
// Who may call: the thread that owns the object, also from its signal handlers. A write that
// interrupts a write of its own thread is refused. Nothing here allocates, locks, makes a system
// call or touches thread-local storage.
//
// Two kinds of reader:
//  - a signal handler on the same thread reads `record` and the line behind it. Compiler fences
//    order the stores for it: checksum 0, fields, checksum.
//  - other threads and processes (only with ctxstorage=otel) read the slot, and what the slot's
//    sequence brackets: the OTEP record and, inside the process, this object. For them the opening
//    store is followed by a release fence and the closing store is a release.

#include <spanprof/internal/records.hpp>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

// A call in the middle of a write would cost as much as the write.
#define SPANPROF_ALWAYS_INLINE inline __attribute__((always_inline))

namespace spanprof::internal {

// Bits of ThreadContext::attention: what a set has to do besides storing two ids.
inline constexpr uint32_t kAttentionOutside = 1u << 0;  // publish to slot and OTEP record
inline constexpr uint32_t kAttentionTrace = 1u << 1;    // a trace id or flags are set
inline constexpr uint32_t kAttentionTimed = 1u << 2;    // latency histograms are on
inline constexpr uint32_t kAttentionStale = 1u << 3;    // of before a shutdown

// Constants of StoreHex64, kept in the thread's own object. In .rodata their line may fall into the
// same set of the first-level cache as the object's, whose way predictor then mistakes one for the
// other at every call: with random load addresses one process in twenty paid 14 ns a set for that.
struct alignas(64) HexConstants {
  unsigned char low_nibble[16];
  unsigned char nine[16];
  unsigned char letter_offset[16];
  unsigned char zero_digit[16];
};

struct alignas(64) ThreadContext {
  // First line: the published record.
  ThreadRecord record;

  // Second line: private, under the same publication.
  std::atomic<uint64_t> trace_id_high{0};
  std::atomic<uint64_t> trace_id_low{0};
  std::atomic<uint32_t> trace_flags{0};
  std::atomic<uint32_t> attention{0};
  std::atomic<Slot*> slot{nullptr};    // the table's, or own_slot; null with ctxstorage=profiler
  std::atomic<uint64_t> slot_word{0};  // the slot's word when idle; spares a load of a shared line
  // Who came last: a write leaves its stack pointer, which tells whether it was left by longjmp; a
  // reader on the thread leaves an odd number of its own, and finds out whether a handler wrote.
  // See IsManagedMark for writers that have no stack pointer.
  std::atomic<uintptr_t> mark{0};
  std::atomic<uint32_t> otel_attributes_size{0};
  std::atomic<uint32_t> tid{0};  // 0: belongs to no thread

  // Then the OTEP record. Its header and the local root's entry fill most of one line.
  alignas(64) unsigned char otel_record[kOtelRecordBytes] = {};

  HexConstants hex_constants = {};

  // Cold.
  Slot own_slot;  // takes the place of the table's slot when that belongs to another live thread
  std::atomic<ThreadContext*> next_free{nullptr};
  std::atomic<uint32_t> registered{0};
};
static_assert(offsetof(ThreadContext, trace_id_high) == 64);
static_assert(offsetof(ThreadContext, otel_record) == 128);
static_assert(sizeof(ThreadContext) == 896);

// ---- Stores that a compiler may neither split into nonsense nor drop -------------------------
// The OTEP record is byte-packed, so its words are not aligned. Nobody in the process but its own
// thread reads it, so these need to be stores, not C++ atomics.

SPANPROF_ALWAYS_INLINE void StoreRecord32(unsigned char* to, uint32_t value) {
  struct __attribute__((packed, may_alias)) Word {
    uint32_t value;
  };
  reinterpret_cast<volatile Word*>(to)->value = value;
}

SPANPROF_ALWAYS_INLINE void StoreRecord64(unsigned char* to, uint64_t value) {
  struct __attribute__((packed, may_alias)) Word {
    uint64_t value;
  };
  reinterpret_cast<volatile Word*>(to)->value = value;
}

SPANPROF_ALWAYS_INLINE void StoreBigEndian64(unsigned char* to, uint64_t value) {
  StoreRecord64(to, __builtin_bswap64(value));
}

// Sixteen lower-case hex digits.
SPANPROF_ALWAYS_INLINE void StoreHex64(unsigned char* to, uint64_t value,
                                       [[maybe_unused]] const HexConstants& constants) {
#if defined(__SSE2__)
  const auto load = [](const unsigned char* from) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(from));
  };
  const __m128i bytes = _mm_cvtsi64_si128(static_cast<long long>(__builtin_bswap64(value)));
  const __m128i nibbles =
      _mm_and_si128(_mm_unpacklo_epi8(_mm_srli_epi16(bytes, 4), bytes), load(constants.low_nibble));
  const __m128i letters =
      _mm_and_si128(_mm_cmpgt_epi8(nibbles, load(constants.nine)), load(constants.letter_offset));
  const __m128i digits = _mm_add_epi8(_mm_add_epi8(nibbles, load(constants.zero_digit)), letters);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), digits);
#else
  const uint32_t halves[2] = {static_cast<uint32_t>(value >> 32), static_cast<uint32_t>(value)};
  for (unsigned half = 0; half < 2; ++half) {
    // Spread eight nibbles over eight bytes, the most significant one last in the word.
    uint64_t nibbles = halves[half];
    nibbles = ((nibbles & 0xFFFF0000u) << 16) | (nibbles & 0xFFFFu);
    nibbles = ((nibbles << 8) | nibbles) & 0x00FF00FF00FF00FFu;
    nibbles = ((nibbles << 4) | nibbles) & 0x0F0F0F0F0F0F0F0Fu;
    const uint64_t above_nine = ((nibbles + 0x0606060606060606u) >> 4) & 0x0101010101010101u;
    StoreBigEndian64(to + 8 * half, nibbles + 0x3030303030303030u + above_nine * ('a' - '0' - 10));
  }
#endif
}

// Only the object's own thread stores, so half a pair can be replaced by a load and a store.
inline void StoreTag(ThreadRecord& record, unsigned slot, uint32_t id) {
  std::atomic<uint64_t>& pair = record.tag_pairs[slot / 2];
  const unsigned shift = (slot % 2) * 32;
  const uint64_t others = pair.load(std::memory_order_relaxed) & ~(uint64_t{0xFFFFFFFF} << shift);
  pair.store(others | (uint64_t{id} << shift), std::memory_order_relaxed);
}

inline uint32_t LoadTag(const ThreadRecord& record, unsigned slot) {
  return static_cast<uint32_t>(record.tag_pairs[slot / 2].load(std::memory_order_relaxed) >>
                               ((slot % 2) * 32));
}

SPANPROF_ALWAYS_INLINE uintptr_t StackPointer() {
#if defined(__x86_64__)
  uintptr_t value;
  __asm__("mov %%rsp, %0" : "=r"(value));
  return value;
#elif defined(__aarch64__)
  uintptr_t value;
  __asm__("mov %0, sp" : "=r"(value));
  return value;
#else
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
#endif
}

// ---- Marks of writers without a stack pointer -------------------------------------------------
// Code that a virtual machine compiles (the Java writer) cannot know its stack pointer. It leaves
// numbers that grow by four and are 2 modulo 4: no stack pointer, since those are multiples of
// eight, and no reader's mark, since those are odd. Such a mark says nothing about where the writer
// is, so native code that finds it takes the write for one that it interrupted.

inline constexpr uintptr_t kFirstManagedMark = 2;
inline constexpr uintptr_t kManagedMarkStep = 4;

// Left in place of a write's own mark by someone who knows that the write will never go on. No
// frame begins in the first page.
inline constexpr uintptr_t kAbandonedMark = 8;

inline constexpr bool IsManagedMark(uintptr_t mark) {
  return mark % kManagedMarkStep == kFirstManagedMark;
}

// ---- The write protocol -----------------------------------------------------------------------

// False while a write is going on (then the caller is a signal handler that interrupted it), and
// for the object of a thread that is not attached, or is the child of a fork that nobody told us
// of.
inline bool IsWritable(const ThreadContext& context) {
  return context.record.checksum.load(std::memory_order_relaxed) != 0;
}

// For a runtime's native method, called by managed code on the object's own thread. Managed code
// does not run inside signal handlers, so a write that is still open then was left for good: by an
// exception in its middle, or by longjmp. The thread's next call starts afresh.
inline void AbandonOpenWrite(ThreadContext& context) {
  if (IsWritable(context)) return;
  context.mark.store(kAbandonedMark, std::memory_order_relaxed);
}

// The steps of a write, in their order. Everything that a write goes by is loaded behind the first:
// before the checksum is 0, a handler may still write, and change it.

SPANPROF_ALWAYS_INLINE void MarkBusy(ThreadContext& context) {
  // The mark first: where the checksum is 0, it is this write's (or that of a handler's write which
  // came between these two stores and is over, which only a second handler could mistake).
  context.mark.store(StackPointer(), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  context.record.checksum.store(0, std::memory_order_relaxed);
  // Pairs with the handler's fence after its load of the checksum.
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Returns the word that will close the slot.
SPANPROF_ALWAYS_INLINE uint64_t OpenSlot(ThreadContext& context, Slot* slot) {
  // Advanced here and not at the end: behind the checksum's store a handler may write again, and
  // must not use the same number.
  const uint64_t word = context.slot_word.load(std::memory_order_relaxed);
  const uint64_t idle_word = word + kSlotFinishWrite;
  context.slot_word.store(idle_word, std::memory_order_relaxed);
  slot->word.store(word + kSlotBeginWrite, std::memory_order_relaxed);
  // Orders the busy word before every field store below, for a reader's acquire fence.
  std::atomic_thread_fence(std::memory_order_release);
  StoreRecord32(context.otel_record + kOtelValidOffset, 0);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return idle_word;
}

SPANPROF_ALWAYS_INLINE void StoreIds(ThreadContext& context, uint64_t span_id,
                                     uint64_t root_span_id) {
  context.record.span_id.store(span_id, std::memory_order_relaxed);
  context.record.root_span_id.store(root_span_id, std::memory_order_relaxed);
}

SPANPROF_ALWAYS_INLINE void StoreIdsOutside(ThreadContext& context, Slot* slot, uint64_t span_id,
                                            uint64_t root_span_id) {
  slot->span_id.store(span_id, std::memory_order_relaxed);
  StoreBigEndian64(context.otel_record + kOtelSpanIdOffset, span_id);
  StoreHex64(context.otel_record + kOtelAttributesOffset + 2, root_span_id, context.hex_constants);
}

// The slot's trace_id_low carries the trace id, or the local root where there is none.
SPANPROF_ALWAYS_INLINE void StoreTrace(ThreadContext& context, Slot* slot, uint64_t trace_id_high,
                                       uint64_t trace_id_low, uint32_t trace_flags,
                                       uint64_t root_span_id) {
  context.trace_id_high.store(trace_id_high, std::memory_order_relaxed);
  context.trace_id_low.store(trace_id_low, std::memory_order_relaxed);
  context.trace_flags.store(trace_flags, std::memory_order_relaxed);
  if (slot == nullptr) return;
  StoreBigEndian64(context.otel_record + kOtelTraceIdOffset, trace_id_high);
  StoreBigEndian64(context.otel_record + kOtelTraceIdOffset + 8, trace_id_low);
  slot->trace_id_high.store(trace_id_high, std::memory_order_relaxed);
  slot->trace_id_low.store((trace_id_high | trace_id_low) != 0 ? trace_id_low : root_span_id,
                           std::memory_order_relaxed);
}

SPANPROF_ALWAYS_INLINE void MakeOtelRecordValid(ThreadContext& context, uint32_t trace_flags,
                                                uint64_t span_id, uint64_t root_span_id) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const uint32_t size = context.otel_attributes_size.load(std::memory_order_relaxed);
  // Without branches: this is the hottest code of the library, and a mispredicted branch costs more
  // than all of it.
  const uint32_t has_tags = size > kLocalRootEntryBytes ? 1 : 0;
  const uint32_t valid = has_tags | (span_id != 0 ? 1 : 0);
  const uint32_t has_attributes = has_tags | (root_span_id != 0 ? 1 : 0);
  StoreRecord32(context.otel_record + kOtelValidOffset,
                OtelRecordState(valid, trace_flags & 0xFF, size & (0 - has_attributes)));
}

// The ids must be those that the record holds.
SPANPROF_ALWAYS_INLINE void MarkReady(ThreadContext& context, uint64_t span_id,
                                      uint64_t root_span_id) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Pairs with the handler's load: a checksum that is not 0 has all fields before it.
  context.record.checksum.store(RecordChecksum(span_id, root_span_id), std::memory_order_relaxed);
}

SPANPROF_ALWAYS_INLINE void CloseSlot(Slot* slot, uint64_t idle_word) {
  // Pairs with the reader's acquire load of the word.
  slot->word.store(idle_word, std::memory_order_release);
}

// The same steps for code that is not so hot: BeginWrite, WriteIds, WriteTrace where the trace
// changes, tags, FinishWrite.
struct OpenWrite {
  Slot* slot = nullptr;    // null when nothing is published outside
  uint64_t idle_word = 0;  // what closes the slot
  uint32_t attention = 0;  // kAttentionTrace follows the context that is being written
};

inline OpenWrite BeginWrite(ThreadContext& context) {
  MarkBusy(context);
  OpenWrite write;
  write.attention = context.attention.load(std::memory_order_relaxed);
  if ((write.attention & kAttentionOutside) != 0) {
    write.slot = context.slot.load(std::memory_order_relaxed);
    write.idle_word = OpenSlot(context, write.slot);
  }
  return write;
}

inline void WriteIds(ThreadContext& context, const OpenWrite& write, uint64_t span_id,
                     uint64_t root_span_id) {
  StoreIds(context, span_id, root_span_id);
  if (write.slot == nullptr) return;
  StoreIdsOutside(context, write.slot, span_id, root_span_id);
  if ((write.attention & kAttentionTrace) == 0) {
    write.slot->trace_id_low.store(root_span_id, std::memory_order_relaxed);
  }
}

// Call after WriteIds, with kAttentionTrace in the write's attention if any of the three is not 0.
inline void WriteTrace(ThreadContext& context, const OpenWrite& write, uint64_t trace_id_high,
                       uint64_t trace_id_low, uint32_t trace_flags) {
  context.attention.store(write.attention, std::memory_order_relaxed);
  StoreTrace(context, write.slot, trace_id_high, trace_id_low, trace_flags,
             context.record.root_span_id.load(std::memory_order_relaxed));
}

inline void FinishWrite(ThreadContext& context, const OpenWrite& write, uint64_t span_id,
                        uint64_t root_span_id) {
  if (write.slot != nullptr) {
    MakeOtelRecordValid(context, context.trace_flags.load(std::memory_order_relaxed), span_id,
                        root_span_id);
  }
  MarkReady(context, span_id, root_span_id);
  if (write.slot != nullptr) CloseSlot(write.slot, write.idle_word);
}

// The rest of a set, behind MarkBusy, that has a trace id to take away. Out of line and the last
// thing that its caller does, so that the hot code around it keeps everything in registers.
[[gnu::cold, gnu::noinline]] inline void FinishSetWithoutTrace(ThreadContext& context,
                                                               uint32_t attention, uint64_t span_id,
                                                               uint64_t root_span_id) {
  OpenWrite write;
  write.attention = attention & ~kAttentionTrace;
  if ((attention & kAttentionOutside) != 0) {
    write.slot = context.slot.load(std::memory_order_relaxed);
    write.idle_word = OpenSlot(context, write.slot);
  }
  WriteIds(context, write, span_id, root_span_id);
  WriteTrace(context, write, 0, 0, 0);
  FinishWrite(context, write, span_id, root_span_id);
}

// Whether latencies are measured is settled when the thread is attached, so this look before the
// marker is good enough.
SPANPROF_ALWAYS_INLINE bool IsForTheLibrary(const ThreadContext& context) {
  const uint32_t attention = context.attention.load(std::memory_order_relaxed);
  return (static_cast<int>(!IsWritable(context)) |
          static_cast<int>((attention & (kAttentionTimed | kAttentionStale)) != 0)) != 0;
}

// The two calls that tracers make most. False: nothing was changed, and the library has to look at
// it (the thread is not attached, a write is interrupted, latencies are measured).
SPANPROF_ALWAYS_INLINE bool TrySet(ThreadContext& context, uint64_t span_id,
                                   uint64_t root_span_id) {
  if (__builtin_expect(IsForTheLibrary(context), 0)) return false;
  MarkBusy(context);
  const uint32_t attention = context.attention.load(std::memory_order_relaxed);
  if (__builtin_expect(attention == 0, 1)) {
    StoreIds(context, span_id, root_span_id);
    MarkReady(context, span_id, root_span_id);
    return true;
  }
  if (__builtin_expect(attention != kAttentionOutside, 0)) {
    FinishSetWithoutTrace(context, attention, span_id, root_span_id);
    return true;
  }
  Slot* slot = context.slot.load(std::memory_order_relaxed);
  const uint64_t idle_word = OpenSlot(context, slot);
  StoreIds(context, span_id, root_span_id);
  StoreIdsOutside(context, slot, span_id, root_span_id);
  slot->trace_id_low.store(root_span_id, std::memory_order_relaxed);
  MakeOtelRecordValid(context, 0, span_id, root_span_id);
  MarkReady(context, span_id, root_span_id);
  CloseSlot(slot, idle_word);
  return true;
}

SPANPROF_ALWAYS_INLINE bool TrySetTrace(ThreadContext& context, uint64_t trace_id_high,
                                        uint64_t trace_id_low, uint64_t span_id,
                                        uint64_t root_span_id) {
  const bool no_trace = (trace_id_high | trace_id_low) == 0;
  if (__builtin_expect(IsForTheLibrary(context) || no_trace, 0)) return false;
  MarkBusy(context);
  const uint32_t attention = context.attention.load(std::memory_order_relaxed) | kAttentionTrace;
  context.attention.store(attention, std::memory_order_relaxed);
  if ((attention & kAttentionOutside) == 0) {
    StoreIds(context, span_id, root_span_id);
    StoreTrace(context, nullptr, trace_id_high, trace_id_low, 0, root_span_id);
    MarkReady(context, span_id, root_span_id);
    return true;
  }
  Slot* slot = context.slot.load(std::memory_order_relaxed);
  const uint64_t idle_word = OpenSlot(context, slot);
  StoreIds(context, span_id, root_span_id);
  StoreIdsOutside(context, slot, span_id, root_span_id);
  StoreTrace(context, slot, trace_id_high, trace_id_low, 0, root_span_id);
  MakeOtelRecordValid(context, 0, span_id, root_span_id);
  MarkReady(context, span_id, root_span_id);
  CloseSlot(slot, idle_word);
  return true;
}

// A tag by number, for callers that know that the position and the id exist. With ctxstorage=otel
// it is for the library, which spells the value out for readers outside.
SPANPROF_ALWAYS_INLINE bool TrySetTag(ThreadContext& context, unsigned slot, uint32_t id) {
  const uint32_t attention = context.attention.load(std::memory_order_relaxed);
  if (IsForTheLibrary(context) || (attention & kAttentionOutside) != 0) return false;
  MarkBusy(context);
  StoreTag(context.record, slot, id);
  MarkReady(context, context.record.span_id.load(std::memory_order_relaxed),
            context.record.root_span_id.load(std::memory_order_relaxed));
  return true;
}

}  // namespace spanprof::internal
