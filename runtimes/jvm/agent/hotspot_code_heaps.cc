// SIGNAL-SAFE, but for Open: see hotspot_code_heaps.h.

#include "agent/hotspot_code_heaps.h"

#include <cerrno>

namespace spanprof::jvm {
namespace {

constexpr uint8_t kFreeSegment = 0xFF;
// A segment's byte says how far back its block starts, at most this far in one step.
constexpr unsigned kMaxSteps = 1u << 20;

}  // namespace

Result<void> HotspotCodeHeaps::Open(const HotspotLayout& layout) {
  layout_ = &layout;
  const auto heaps = LoadPlain<uint64_t>(layout.heaps);
  if (heaps == 0) return Fail(EAGAIN, "the JVM has no code heaps yet", "open them after VMInit");
  const int64_t count = LoadField(heaps, layout.array_length);
  const uint64_t data = LoadAddress(heaps, layout.array_data);
  if (count < 1 || count > kMaxHeaps) {
    return Fail(ENOTSUP, "the JVM says that it has " + std::to_string(count) + " code heaps",
                "the walker asgct is used instead");
  }
  count_ = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto heap = LoadPlain<uint64_t>(data + static_cast<uint64_t>(i) * sizeof(uint64_t));
    Heap& known = heaps_[count_++];
    known.memory = heap + layout.heap_memory.offset;
    known.segment_map = heap + layout.heap_segment_map.offset;
    known.low = LoadAddress(known.memory, layout.space_low);
    known.log2_segment = static_cast<unsigned>(LoadField(heap, layout.heap_log2_segment));
    if (known.log2_segment > 20) {
      return Fail(ENOTSUP, "a code heap's segments are 2^" + std::to_string(known.log2_segment),
                  "the walker asgct is used instead");
    }
  }
  low_ = LoadPlain<uint64_t>(layout.low_bound);
  bytes_ = LoadPlain<uint64_t>(layout.high_bound) - low_;
  const auto interpreter = LoadPlain<uint64_t>(layout.interpreter);
  interpreter_ = LoadAddress(interpreter, layout.stub_queue_buffer);
  interpreter_bytes_ = LoadAddress(interpreter, layout.stub_queue_limit);
  call_stub_return_ = LoadPlain<uint64_t>(layout.call_stub_return);
  return {};
}

bool HotspotCodeHeaps::IsCommitted(uint64_t address, uint64_t size) const noexcept {
  for (unsigned i = 0; i < count_; ++i) {
    const uint64_t high = LoadAddress(heaps_[i].memory, layout_->space_high);
    if (address >= heaps_[i].low && address < high) return size <= high - address;
  }
  return false;
}

uint64_t HotspotCodeHeaps::FindBlob(uint64_t pc) const noexcept {
  for (unsigned i = 0; i < count_; ++i) {
    const Heap& heap = heaps_[i];
    const uint64_t high = LoadAddress(heap.memory, layout_->space_high);
    if (pc < heap.low || pc >= high) continue;
    const uint64_t map = LoadAddress(heap.segment_map, layout_->space_low);
    const uint64_t map_bytes = LoadAddress(heap.segment_map, layout_->space_high) - map;
    uint64_t segment = (pc - heap.low) >> heap.log2_segment;
    for (unsigned step = 0; step < kMaxSteps; ++step) {
      if (segment >= map_bytes) return 0;
      const auto back = LoadPlain<uint8_t>(map + segment);
      if (back == kFreeSegment) return 0;
      if (back == 0) break;
      segment -= back;
    }
    const uint64_t block = heap.low + (segment << heap.log2_segment);
    if (block < heap.low || block + layout_->block_header_bytes >= high) return 0;
    if (LoadField(block, layout_->block_used) == 0) return 0;
    const uint64_t blob = block + layout_->block_header_bytes;
    const auto size = static_cast<uint64_t>(LoadField(blob, layout_->blob_size));
    // A blob that is being made or freed may say anything.
    return pc >= blob && pc - blob < size && size <= high - blob ? blob : 0;
  }
  return 0;
}

}  // namespace spanprof::jvm
