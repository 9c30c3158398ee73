#include "coroutine/station_numbering.h"

namespace spanprof::coroutine {
namespace {

using internal::coroutine::kNumberingEvents;
using internal::coroutine::kNumberingPerSlot;
using internal::coroutine::kNumberingText;
using internal::coroutine::kNumberingUnknown;
using internal::coroutine::kSlotCount;

bool FitsEvents(const SlotSequences& sequences) {
  for (unsigned slot = 0; slot < kSlotCount; ++slot) {
    const uint64_t sequence = sequences[slot];
    if (sequence != 0 && sequence % (2 * kSlotCount) != (2 * (slot + 1)) % (2 * kSlotCount)) {
      return false;
    }
  }
  return true;
}

bool FitsText(const SlotSequences& sequences) {
  for (unsigned slot = 0; slot < kSlotCount; ++slot) {
    if (sequences[slot] != 0 && sequences[slot] % kSlotCount != slot) return false;
  }
  return true;
}

}  // namespace

Numbering GuessNumbering(const SlotSequences& sequences) {
  bool published = false;
  for (const uint64_t sequence : sequences) published |= sequence != 0;
  if (!published) return kNumberingUnknown;
  if (FitsEvents(sequences)) return kNumberingEvents;
  if (FitsText(sequences)) return kNumberingText;
  return kNumberingPerSlot;
}

uint64_t EventNumber(Numbering numbering, unsigned slot, uint64_t sequence) {
  if (sequence == 0) return 0;
  switch (numbering) {
    case kNumberingEvents:
      return sequence % 2 == 0 ? sequence / 2 : 0;
    case kNumberingPerSlot:
      return sequence % 2 == 0 ? (sequence / 2 - 1) * kSlotCount + slot + 1 : 0;
    case kNumberingText:
      return sequence;
    case kNumberingUnknown:
      return 0;
  }
  return 0;
}

}  // namespace spanprof::coroutine
