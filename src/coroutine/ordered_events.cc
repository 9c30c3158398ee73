#include "coroutine/ordered_events.h"

#include <algorithm>
#include <limits>

namespace spanprof::coroutine {

void OrderedEvents::OnEvents(const EventBlock& block) {
  Waiting& waiting = targets_[block.target];
  uint64_t& next = waiting.positions[block.ring];
  uint64_t position = block.first;
  for (const RingEvent& record : block.events) {
    if (position++ < next) {
      ++repeated_events_;
      continue;
    }
    waiting.events.push_back({block.target, block.tid, record, numbers_++});
  }
  next = std::max(next, position);
}

void OrderedEvents::OnPass(const PassMark& pass) { Emit(targets_[pass.target], pass.stamp); }

void OrderedEvents::Flush() {
  for (auto& [target, waiting] : targets_) Emit(waiting, std::numeric_limits<uint64_t>::max());
}

void OrderedEvents::Emit(Waiting& waiting, uint64_t up_to) {
  // What a thread did at the same tick stays in its order.
  std::sort(waiting.events.begin(), waiting.events.end(), [](const Event& a, const Event& b) {
    return a.record.stamp != b.record.stamp ? a.record.stamp < b.record.stamp : a.number < b.number;
  });
  const auto end = std::find_if(waiting.events.begin(), waiting.events.end(),
                                [&](const Event& event) { return event.record.stamp > up_to; });
  for (auto event = waiting.events.begin(); event != end; ++event) OnEvent(*event);
  waiting.events.erase(waiting.events.begin(), end);
}

}  // namespace spanprof::coroutine
