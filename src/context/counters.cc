#include "context/counters.h"

#include "context/process_state.h"

namespace spanprof::context {
namespace {

// In the order of enum Counter. The names are part of the interface.
constexpr const char* kNames[] = {
    "nested_write_refused", "abandoned_write",    "exiting_thread_refused",
    "thread_not_attached",  "slot_collision",     "slot_taken_from_dead",
    "dictionary_full",      "tag_value_too_long", "unknown_tag",
    "attribute_cut",        "endpoint_evicted",   "endpoint_dropped",
    "read_in_progress",     "read_changed",       "read_torn",
    "read_foreign_owner",   "read_no_thread",     "fork_unannounced"};
static_assert(sizeof(kNames) / sizeof(kNames[0]) == kCounterCount);

}  // namespace

void Count(Counter counter, uint64_t amount) {
  if (ProcessState* state = CurrentProcessState()) {
    state->counters[static_cast<unsigned>(counter)].fetch_add(amount, std::memory_order_relaxed);
  }
}

uint64_t CounterValue(unsigned index) {
  const ProcessState* state = CurrentProcessState();
  if (state == nullptr || index >= kCounterCount) return 0;
  return state->counters[index].load(std::memory_order_relaxed);
}

const char* CounterName(unsigned index) { return index < kCounterCount ? kNames[index] : nullptr; }

}  // namespace spanprof::context
