#pragma once

// The events of a recording in the order of their time, each once. Rings are recorded one after
// another, so an event may stand behind later ones of another ring; the marks of the harvester's
// passes tell when nothing earlier can come any more. Events that stand in the recording twice
// (their harvester was killed before it could say that it had them) are known by their position.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "coroutine/recording.h"

namespace spanprof::coroutine {

class OrderedEvents : public RecordingVisitor {
 public:
  struct Event {
    uint32_t target = 0;
    uint32_t tid = 0;
    RingEvent record;
    uint64_t number = 0;  // in the order of the recording
  };

  void OnEvents(const EventBlock& block) final;
  void OnPass(const PassMark& pass) final;
  // To be called behind the last block.
  void Flush();

  [[nodiscard]] uint64_t repeated_events() const { return repeated_events_; }

 protected:
  virtual void OnEvent(const Event& event) = 0;

 private:
  struct Waiting {
    std::vector<Event> events;
    std::map<uint32_t, uint64_t> positions;  // by ring: what comes next
  };
  void Emit(Waiting& waiting, uint64_t up_to);

  std::map<uint32_t, Waiting> targets_;
  uint64_t repeated_events_ = 0;
  uint64_t numbers_ = 0;
};

}  // namespace spanprof::coroutine
