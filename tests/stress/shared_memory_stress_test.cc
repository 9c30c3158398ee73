// One process writes a context through plain shared memory at full speed, another one reads it: the
// protocol functions of the library, and as a control protocols that are known to be broken, which
// the same harness must catch.

#include <cstdio>
#include <cstring>
#include <string>

#include <gtest/gtest.h>
#include <sys/uio.h>

#include "child_process.h"
#include "context/otel_attributes.h"
#include "self_checking_context.h"
#include "stress_run.h"
#include <spanprof/internal/thread_context.hpp>

namespace spanprof::stress {
namespace {

using internal::Slot;
using internal::ThreadContext;

constexpr uint32_t kKey = 5, kOwner = 77;
constexpr uint32_t kAttention = internal::kAttentionOutside | internal::kAttentionTrace;

struct Arena {
  alignas(64) Slot slot;
  alignas(64) ThreadContext context;
  alignas(64) std::atomic<uint64_t> written{0};  // the last number that is complete
  std::atomic<bool> stop{false};
};

enum class Protocol {
  kLibrary,      // internal/thread_context.hpp
  kOriginal,     // the seed's: in_use stored 1, data, in_use stored 0; the reader looks twice
  kTagsOutside,  // the library's, but tags and trace flags are stored behind it
};

uint32_t TagNumber(uint64_t n, unsigned tag) {
  return static_cast<uint32_t>(SpanOf(tag + 100, n) | 1);
}

void WriteTags(ThreadContext& context, uint64_t n) {
  for (unsigned tag = 0; tag < kTags; ++tag) {
    internal::StoreTag(context.record, tag, TagNumber(n, tag));
  }
}

void WriteByLibrary(Arena& arena, uint64_t n, bool tags_outside) {
  ThreadContext& context = arena.context;
  const Fields fields = FullFields(kKey, n);
  const internal::OpenWrite write = internal::BeginWrite(context);
  internal::WriteIds(context, write, fields.span_id, fields.root_span_id);
  internal::WriteTrace(context, write, fields.trace_id_high, fields.trace_id_low,
                       fields.trace_flags);
  if (!tags_outside) WriteTags(context, n);
  internal::FinishWrite(context, write, fields.span_id, fields.root_span_id);
  if (tags_outside) WriteTags(context, n);
}

void StoreInUse(Slot& slot, unsigned char value) {
  __atomic_store_n(reinterpret_cast<unsigned char*>(&slot.word), value, __ATOMIC_RELEASE);
}

bool LoadInUse(const Slot& slot) {
  return __atomic_load_n(reinterpret_cast<const unsigned char*>(&slot.word), __ATOMIC_ACQUIRE) != 0;
}

void WriteByOriginal(Arena& arena, uint64_t n) {
  const Fields fields = FullFields(kKey, n);
  StoreInUse(arena.slot, 1);
  arena.slot.trace_id_high.store(fields.trace_id_high, std::memory_order_relaxed);
  arena.slot.trace_id_low.store(fields.trace_id_low, std::memory_order_relaxed);
  arena.slot.span_id.store(fields.span_id, std::memory_order_relaxed);
  StoreInUse(arena.slot, 0);
}

void WriteUntilStopped(Arena& arena, Protocol protocol) {
  arena.context.attention.store(kAttention, std::memory_order_relaxed);
  arena.context.slot.store(&arena.slot, std::memory_order_relaxed);
  arena.slot.word.store(uint64_t{kOwner} << 8, std::memory_order_relaxed);
  arena.context.slot_word.store(uint64_t{kOwner} << 8, std::memory_order_relaxed);
  context::InitialiseOtelRecord(arena.context);
  for (uint64_t n = 1; !arena.stop.load(std::memory_order_relaxed); ++n) {
    if (protocol == Protocol::kOriginal) {
      WriteByOriginal(arena, n);
    } else {
      WriteByLibrary(arena, n, protocol == Protocol::kTagsOutside);
    }
    arena.written.store(n, std::memory_order_release);
  }
}

// What a reader got of one context.
struct Image {
  uint64_t before = 0, after = 0;
  uint64_t trace_id_high = 0, trace_id_low = 0, span_id = 0;
  bool has_object = false;
  uint64_t root_span_id = 0, object_span_id = 0, object_trace_id_high = 0;
  uint32_t trace_flags = 0;
  uint32_t tags[kTags] = {};
  unsigned char record[internal::kOtelAttributesOffset + internal::kLocalRootEntryBytes] = {};
};

void LoadSlot(const Slot& slot, Image* image) {
  image->trace_id_high = slot.trace_id_high.load(std::memory_order_relaxed);
  image->trace_id_low = slot.trace_id_low.load(std::memory_order_relaxed);
  image->span_id = slot.span_id.load(std::memory_order_relaxed);
}

void LoadObject(const ThreadContext& context, Image* image) {
  image->has_object = true;
  image->object_span_id = context.record.span_id.load(std::memory_order_relaxed);
  image->root_span_id = context.record.root_span_id.load(std::memory_order_relaxed);
  image->object_trace_id_high = context.trace_id_high.load(std::memory_order_relaxed);
  image->trace_flags = context.trace_flags.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < kTags; ++i) image->tags[i] = internal::LoadTag(context.record, i);
  // Written by the other process as volatile words; this is what a copy through the kernel does.
  for (size_t i = 0; i < sizeof image->record; ++i) {
    image->record[i] = const_cast<const volatile unsigned char*>(context.otel_record)[i];
  }
}

// Through shared memory. False: refused by the protocol.
bool ReadPlain(Arena& arena, Protocol protocol, Image* image) {
  if (protocol == Protocol::kOriginal) {
    if (LoadInUse(arena.slot)) return false;
    LoadSlot(arena.slot, image);
    return !LoadInUse(arena.slot);
  }
  image->before = arena.slot.word.load(std::memory_order_acquire);
  if (internal::SlotIsBusy(image->before) || internal::SlotOwner(image->before) != kOwner) {
    return false;
  }
  LoadSlot(arena.slot, image);
  LoadObject(arena.context, image);
  std::atomic_thread_fence(std::memory_order_acquire);
  return arena.slot.word.load(std::memory_order_relaxed) == image->before;
}

// Field by field through the kernel, as the seed's readers do. False: refused.
bool ReadRemotely(pid_t pid, Arena& arena, Image* image) {
  const auto fetch = [pid](void* to, const void* from, size_t bytes) {
    iovec local = {to, bytes}, remote = {const_cast<void*>(from), bytes};
    return process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
  };
  uint64_t ids[3];
  if (!fetch(&image->before, &arena.slot.word, 8) || (image->before & 0xFF) != 0 ||
      !fetch(ids, &arena.slot, sizeof ids) || !fetch(&image->after, &arena.slot.word, 8)) {
    return false;
  }
  image->trace_id_high = ids[0];
  image->trace_id_low = ids[1];
  image->span_id = ids[2];
  return (image->after & 0xFF) == 0;
}

Verdict JudgeImage(const Image& image, uint64_t oldest) {
  if (image.span_id == 0) return oldest == 0 ? Verdict::kRight : Verdict::kTorn;
  const uint64_t n = StepOfSpan(image.span_id);
  const Fields wanted = FullFields(kKey, n);
  if (image.span_id != wanted.span_id || image.trace_id_high != wanted.trace_id_high ||
      image.trace_id_low != wanted.trace_id_low) {
    return Verdict::kTorn;
  }
  if (image.has_object) {
    if (image.object_span_id != wanted.span_id || image.root_span_id != wanted.root_span_id ||
        image.object_trace_id_high != wanted.trace_id_high ||
        image.trace_flags != wanted.trace_flags) {
      return Verdict::kTorn;
    }
    for (unsigned i = 0; i < kTags; ++i) {
      if (image.tags[i] != TagNumber(n, i)) return Verdict::kTorn;
    }
    unsigned char expected[sizeof image.record];
    memcpy(expected, image.record, sizeof expected);
    internal::StoreBigEndian64(expected, wanted.trace_id_high);
    internal::StoreBigEndian64(expected + 8, wanted.trace_id_low);
    internal::StoreBigEndian64(expected + 16, wanted.span_id);
    internal::StoreRecord32(
        expected + internal::kOtelValidOffset,
        internal::OtelRecordState(1, wanted.trace_flags, internal::kLocalRootEntryBytes));
    char root[17];
    snprintf(root, sizeof root, "%016llx", static_cast<unsigned long long>(wanted.root_span_id));
    memcpy(expected + internal::kOtelAttributesOffset + 2, root, 16);
    if (memcmp(expected, image.record, sizeof expected) != 0) return Verdict::kTorn;
  }
  return n < oldest ? Verdict::kStale : Verdict::kRight;
}

// Runs writer and reader until enough was seen: reads if `wants_torn` is false, else one torn read.
void RunBoth(Protocol protocol, bool remotely, bool wants_torn, Tally* tally) {
  const Shared<Arena> arena;
  ChildProcess writer([&arena, protocol] {
    WriteUntilStopped(*arena, protocol);
    return 0;
  });
  while (arena->written == 0) SleepMilliseconds(1);
  const StressRun run;
  const auto enough = [&] { return wants_torn ? tally->torn > 0 : tally->right >= kEnoughReads; };
  for (unsigned i = 0; i % 1024 != 0 || !run.Done(enough()); ++i) {
    const uint64_t oldest = arena->written.load(std::memory_order_acquire);
    Image image;
    const bool accepted =
        remotely ? ReadRemotely(writer.pid(), *arena, &image) : ReadPlain(*arena, protocol, &image);
    if (accepted) {
      tally->Add(JudgeImage(image, oldest));
    } else {
      ++tally->refused;
    }
  }
  arena->stop = true;
  EXPECT_EQ(writer.Wait(), 0) << writer.problem();
  run.ReportRate("updates", arena->written);
  run.ReportRate("reads_accepted", tally->right + tally->wrong());
  run.Report("reads_refused", tally->refused);
  run.Report("reads_torn", tally->torn);
}

TEST(SharedMemoryStress, TheLibrarysProtocolIsNeverTorn) {
  Tally tally;
  RunBoth(Protocol::kLibrary, false, false, &tally);
  EXPECT_GE(tally.right, kEnoughReads);
  EXPECT_EQ(tally.wrong(), 0u) << tally.Text();
}

TEST(SharedMemoryStressControl, TheOriginalProtocolIsSeenToBeTorn) {
  Tally tally;
  RunBoth(Protocol::kOriginal, false, true, &tally);
  EXPECT_GT(tally.torn, 0u) << "the harness does not see torn reads";
}

TEST(SharedMemoryStressControl, TheOriginalProtocolIsSeenToBeTornByProcessVmReadv) {
  Tally tally;
  RunBoth(Protocol::kOriginal, true, true, &tally);
  EXPECT_GT(tally.torn, 0u) << "the harness does not see torn reads";
}

TEST(SharedMemoryStressControl, TagsOutsideThePublicationAreSeenToBeTorn) {
  Tally tally;
  RunBoth(Protocol::kTagsOutside, false, true, &tally);
  EXPECT_GT(tally.torn, 0u) << "the harness does not see torn reads";
}

}  // namespace
}  // namespace spanprof::stress
