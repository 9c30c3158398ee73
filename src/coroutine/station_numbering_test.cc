#include "coroutine/station_numbering.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace spanprof::coroutine {
namespace {

namespace wire = internal::coroutine;

// The slots after `events` events of a probe with this numbering.
SlotSequences After(Numbering numbering, uint64_t events) {
  SlotSequences sequences = {};
  for (uint64_t k = 1; k <= events; ++k) {
    if (numbering == wire::kNumberingEvents) sequences[(k - 1) % 8] = 2 * k;
    if (numbering == wire::kNumberingPerSlot) sequences[(k - 1) % 8] += 2;
    if (numbering == wire::kNumberingText) sequences[k % 8] = k;
  }
  return sequences;
}

TEST(StationNumbering, EveryNumberingIsToldFromTheOthersFromTheSecondEventOn) {
  for (const Numbering numbering :
       {wire::kNumberingEvents, wire::kNumberingPerSlot, wire::kNumberingText}) {
    for (uint64_t events = 2; events < 200; ++events) {
      EXPECT_EQ(GuessNumbering(After(numbering, events)), numbering) << events << " events";
    }
  }
}

TEST(StationNumbering, TheFirstEventIsTheSameEventWhateverItsNumbering) {
  for (const Numbering numbering :
       {wire::kNumberingEvents, wire::kNumberingPerSlot, wire::kNumberingText}) {
    const SlotSequences sequences = After(numbering, 1);
    const Numbering guess = GuessNumbering(sequences);
    const unsigned slot = numbering == wire::kNumberingText ? 1 : 0;
    EXPECT_EQ(EventNumber(guess, slot, sequences[slot]), 1u);
  }
}

TEST(StationNumbering, EventsAreNumberedFromOneWithoutGaps) {
  for (const Numbering numbering :
       {wire::kNumberingEvents, wire::kNumberingPerSlot, wire::kNumberingText}) {
    for (uint64_t k = 1; k < 100; ++k) {
      const unsigned slot = numbering == wire::kNumberingText ? k % 8 : (k - 1) % 8;
      EXPECT_EQ(EventNumber(numbering, slot, After(numbering, k)[slot]), k);
    }
  }
}

TEST(StationNumbering, ASlotThatIsBeingWrittenHasNoEvent) {
  EXPECT_EQ(EventNumber(wire::kNumberingEvents, 3, 0), 0u);
  EXPECT_EQ(EventNumber(wire::kNumberingPerSlot, 3, 5), 0u);
}

TEST(StationNumbering, APerSlotWriterInTheMiddleOfASlotIsStillKnown) {
  SlotSequences sequences = After(wire::kNumberingPerSlot, 11);
  sequences[3] += 1;
  EXPECT_EQ(GuessNumbering(sequences), wire::kNumberingPerSlot);
}

TEST(StationNumbering, NothingPublishedIsUnknown) {
  EXPECT_EQ(GuessNumbering({}), wire::kNumberingUnknown);
}

TEST(StationNumbering, SlotsOfDifferentInstantsAreStillTold) {
  for (const Numbering numbering :
       {wire::kNumberingEvents, wire::kNumberingPerSlot, wire::kNumberingText}) {
    SlotSequences mixed = After(numbering, 40);
    const SlotSequences later = After(numbering, 61);
    for (unsigned slot = 3; slot < 8; ++slot) mixed[slot] = later[slot];
    EXPECT_EQ(GuessNumbering(mixed), numbering);
  }
}

}  // namespace
}  // namespace spanprof::coroutine
