#include "store_handles.h"

#include <utility>

#include "v8_objects.h"

namespace spanprof::node {

uint64_t StoreHandles::Add(v8::Isolate* isolate, const uint64_t* tagged_word) {
  handles_.emplace_back(isolate, LocalOfSlot(tagged_word));
  return handles_.size() - 1;
}

size_t StoreHandles::TakeOver(v8::Isolate* isolate, RecordRing& ring, size_t first) {
  std::unordered_map<uint64_t, uint64_t> numbers;
  const size_t count = ring.size();
  for (size_t i = first; i < count; ++i) {
    SampleRecord& record = ring[i];
    if (record.state != StoreState::kRaw) continue;
    const auto [number, is_new] = numbers.try_emplace(record.store, 0);
    if (is_new) number->second = Add(isolate, &record.store);
    record.store = number->second;
    record.state = StoreState::kHandle;
  }
  return count;
}

void StoreHandles::KeepOnly(RecordRing& ring) {
  std::vector<v8::Global<v8::Value>> kept;
  std::unordered_map<uint64_t, uint64_t> numbers;
  const size_t count = ring.size();
  for (size_t i = 0; i < count; ++i) {
    SampleRecord& record = ring[i];
    if (record.state != StoreState::kHandle) continue;
    const auto [number, is_new] = numbers.try_emplace(record.store, kept.size());
    if (is_new) kept.push_back(std::move(handles_[record.store]));
    record.store = number->second;
  }
  handles_ = std::move(kept);
}

}  // namespace spanprof::node
