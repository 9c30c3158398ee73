#include "context/endpoint_table.h"

#include "context/counters.h"
#include "context/platform.h"
#include "context/process_state.h"

namespace spanprof::context {

bool EndpointTable::Create() {
  if (entries_.load(std::memory_order_acquire) != nullptr) return true;
  void* memory = MapAnonymous(sizeof(Entry) * kSets * kWays);
  if (memory == nullptr) return false;
  entries_.store(static_cast<Entry*>(memory), std::memory_order_release);
  return true;
}

EndpointTable::Entry* EndpointTable::SetOf(uint64_t root_span_id) const {
  Entry* entries = entries_.load(std::memory_order_acquire);
  if (entries == nullptr) return nullptr;
  const uint64_t hash = root_span_id * 0x9E3779B97F4A7C15u;
  return entries + (hash >> 51) % kSets * kWays;
}

void EndpointTable::Set(uint64_t root_span_id, uint32_t endpoint) {
  Entry* set = SetOf(root_span_id);
  ProcessState* state = CurrentProcessState();
  if (root_span_id == 0 || set == nullptr || state == nullptr) return;
  // One writer at a time; a second one gives up rather than wait in somebody's request.
  if (state->endpoint_lock.exchange(1, std::memory_order_acquire) != 0) {
    for (int i = 0; i < 1000 && state->endpoint_lock.exchange(1, std::memory_order_acquire) != 0;) {
      if (++i == 1000) {
        Count(Counter::kEndpointDropped);
        return;
      }
    }
  }
  Entry* chosen = &set[0];
  for (uint32_t i = 0; i < kWays; ++i) {
    Entry& entry = set[i];
    const uint64_t root = entry.root_span_id.load(std::memory_order_relaxed);
    if (root == root_span_id || root == 0) {
      chosen = &entry;
      break;
    }
    if (entry.age.load(std::memory_order_relaxed) < chosen->age.load(std::memory_order_relaxed)) {
      chosen = &entry;
    }
  }
  const uint64_t displaced = chosen->root_span_id.load(std::memory_order_relaxed);
  if (displaced != 0 && displaced != root_span_id) Count(Counter::kEndpointEvicted);
  // A reader takes an endpoint only between two looks at the same root.
  chosen->root_span_id.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  chosen->endpoint.store(endpoint, std::memory_order_relaxed);
  chosen->age.store(clock_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  chosen->root_span_id.store(root_span_id, std::memory_order_release);
  state->endpoint_lock.store(0, std::memory_order_release);
}

uint32_t EndpointTable::Find(uint64_t root_span_id) const {
  const Entry* set = SetOf(root_span_id);
  if (root_span_id == 0 || set == nullptr) return 0;
  for (uint32_t i = 0; i < kWays; ++i) {
    if (set[i].root_span_id.load(std::memory_order_acquire) != root_span_id) continue;
    const uint32_t endpoint = set[i].endpoint.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (set[i].root_span_id.load(std::memory_order_relaxed) == root_span_id) return endpoint;
  }
  return 0;
}

}  // namespace spanprof::context
