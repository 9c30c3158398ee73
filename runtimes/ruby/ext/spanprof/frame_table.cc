// SIGNAL-SAFE: Intern.

#include "frame_table.h"

namespace spanprof::ruby {
namespace {

// Objects are 40 bytes apart.
uint32_t HashOf(VALUE frame) {
  return static_cast<uint32_t>((frame >> 3) * 0x9E3779B97F4A7C15u >> 40);
}

}  // namespace

uint32_t FrameTable::Intern(VALUE frame) noexcept {
  for (uint32_t step = 0; step < kPlaces; ++step) {
    const uint32_t number = (HashOf(frame) + step) % kPlaces;
    Place& place = places_[number];
    VALUE there = place.frame.load(std::memory_order_acquire);
    if (there == frame) return number;
    if (there != 0) continue;
    const uint32_t position = count_.load(std::memory_order_relaxed);
    if (position >= kMaxFrames) break;
    if (place.frame.compare_exchange_strong(there, frame, std::memory_order_acq_rel)) {
      // Of two threads that came so far at once, both may get a place beyond the limit.
      const uint32_t mine = count_.fetch_add(1, std::memory_order_acq_rel);
      if (mine < kMaxFrames) {
        list_[mine].store(number + 1, std::memory_order_release);  // pairs with Name's load
        return number;
      }
      count_.store(kMaxFrames, std::memory_order_relaxed);
      break;
    }
    if (there == frame) return number;
  }
  refused_.fetch_add(1, std::memory_order_relaxed);
  return kFull;
}

const FrameDescription* FrameTable::Description(uint32_t number) const {
  if (number >= kPlaces) return nullptr;
  return places_[number].description.load(std::memory_order_acquire);
}

void FrameTable::Mark() const {
  const uint32_t count = count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count && i < kMaxFrames; ++i) {
    const uint32_t listed = list_[i].load(std::memory_order_acquire);
    if (listed != 0) rb_gc_mark(places_[listed - 1].frame.load(std::memory_order_relaxed));
  }
}

// What came in after Mark was not pinned and may have moved. It keeps its number; a handler that
// meets the object at its new address gives it a second one, with the same name.
void FrameTable::Update() {
  const uint32_t count = count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count && i < kMaxFrames; ++i) {
    const uint32_t listed = list_[i].load(std::memory_order_acquire);
    if (listed == 0) continue;
    std::atomic<VALUE>& frame = places_[listed - 1].frame;
    frame.store(rb_gc_location(frame.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  }
}

void FrameTable::Clear() {
  for (Place& place : places_) {
    place.frame.store(0, std::memory_order_relaxed);
    delete place.description.exchange(nullptr, std::memory_order_relaxed);
  }
  for (std::atomic<uint32_t>& listed : list_) listed.store(0, std::memory_order_relaxed);
  count_.store(0, std::memory_order_release);
  named_ = 0;
}

}  // namespace spanprof::ruby
