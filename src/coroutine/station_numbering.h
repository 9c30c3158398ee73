#pragma once

// The three ways in which probes number the events of a cTP station, told apart by what stands in
// its slots. Whatever the numbering, an event has a number from 1 on, so what was overwritten
// between two looks can be counted.

#include <array>
#include <cstdint>

#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {

using internal::coroutine::Numbering;
using SlotSequences = std::array<uint64_t, internal::coroutine::kSlotCount>;

// kNumberingUnknown if no event was published yet. A station with one event only is told to be
// kNumberingEvents where the per-slot numbering looks the same; both mean the same event then. The
// slots need not have been read at the same instant: the first and the last numbering are known by
// each slot alone, and what fits neither is the one in between.
[[nodiscard]] Numbering GuessNumbering(const SlotSequences& sequences);

// The number of the event in a slot; 0 if the slot has none, or one that is being written.
[[nodiscard]] uint64_t EventNumber(Numbering numbering, unsigned slot, uint64_t sequence);

}  // namespace spanprof::coroutine
