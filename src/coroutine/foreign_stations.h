#pragma once

// Taking the events of probes that are not ours out of a cTP file: any of the three numberings,
// station by station. The file is read, never mapped: who writes it can also cut it short.
//
// An event is accepted if its slot was the same, every byte of it, in two reads after one another:
// a writer that was in the middle of it in the first has at least the other sequence in the second.
// (With the specification's text as the writer even that may tear: its slots are never marked as
// being written.) Not thread-safe.

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "coroutine/recording.h"
#include "coroutine/station_numbering.h"

namespace spanprof::coroutine {

class ForeignStations {
 public:
  // `target` is the number that the events get in the recording.
  ForeignStations(UniqueFd file, uint32_t target) : file_(std::move(file)), target_(target) {}

  // Appends what is new. Returns whether there was anything.
  bool Harvest(std::vector<SlotEventInfo>& events);
  // Sets or clears tracer_sleeping.
  void SetSleeping(bool sleeping);

  // Events that were overwritten before they were read, up to now.
  [[nodiscard]] uint64_t lost() const;
  [[nodiscard]] uint64_t received() const { return received_; }
  // Slots that changed while they were read; they are read again the next time.
  [[nodiscard]] uint64_t torn() const { return torn_; }
  // Coroutines that found no station.
  [[nodiscard]] uint64_t untraced() const { return untraced_; }
  // Coroutines whose station says that they are dead.
  [[nodiscard]] uint64_t dead() const;

 private:
  struct Station {
    Numbering numbering = internal::coroutine::kNumberingUnknown;
    bool settled = false;                                  // the numbering is known for good
    uint64_t newest = 0;                                   // the highest event number
    uint64_t received = 0;                                 // events
    uint64_t slots[internal::coroutine::kSlotCount] = {};  // event numbers taken
    bool dead = false;
  };

  bool HarvestStation(uint32_t index, const char* first, const char* second,
                      std::vector<SlotEventInfo>& events);

  UniqueFd file_;
  uint32_t target_;
  std::vector<Station> stations_;
  std::string first_;
  std::string second_;
  uint64_t received_ = 0;
  uint64_t torn_ = 0;
  uint64_t untraced_ = 0;
};

}  // namespace spanprof::coroutine
