#pragma once

// Collects the events of coroutines from any number of processes, each found by its number or
// started with our environment, into one recording.
//
//   Result<Harvester> harvester = Harvester::Create(&writer);
//   harvester->AttachProcess(4242);
//   while (!done) harvester->Work();
//   harvester->Finish();
//
// It may be killed at any moment: the targets go on, and the next harvester goes on where this one
// was. Not thread-safe.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "coroutine/foreign_stations.h"
#include "coroutine/harvested_target.h"
#include "coroutine/recording.h"
#include "coroutine/wake_listener.h"

namespace spanprof::coroutine {

class Harvester {
 public:
  // `writer` outlives the harvester; null: events are taken and not kept.
  [[nodiscard]] static Result<Harvester> Create(RecordingWriter* writer);

  // Turns tracing on in a running process.
  [[nodiscard]] Result<void> AttachProcess(pid_t pid);
  // What to set in the environment of a command so that its probes, ours or foreign, come to us.
  // Foreign ones get a file with that many stations.
  [[nodiscard]] Result<std::vector<std::string>> Environment(uint32_t stations);

  // Asks the system to let this thread run before others, as far as it may (root, CAP_SYS_NICE or
  // RLIMIT_NICE): on a busy machine a harvester that waits for its turn loses events. Whatever this
  // thread starts from now on inherits it. Returns whether it was granted.
  static bool RaisePriority();

  // Takes what there is; if there is nothing, waits a little, and after a while sleeps until a
  // probe wakes us, for at most `sleep_milliseconds`.
  [[nodiscard]] Result<void> Work(int sleep_milliseconds = 100);
  // Takes what there is, without waiting. Returns the number of events.
  [[nodiscard]] Result<uint64_t> Pass();
  // Writes what a reader needs of what was written up to now, without ending.
  [[nodiscard]] Result<void> Checkpoint();
  // From now on, coroutines that get stuck are found: see FindStuck.
  void WatchForStuck();
  // Those that have become stuck since the last call, by the rule of findings.h.
  [[nodiscard]] std::vector<StuckCoroutine> FindStuck(std::chrono::nanoseconds limit);
  // Connections of those who ask for what a flight recorder has; they get an answer there.
  [[nodiscard]] std::vector<UniqueFd> TakeDumpRequests() { return listener_.TakeDumpRequests(); }

  // Takes the rest, turns tracing off and writes the end of the recording.
  [[nodiscard]] Result<void> Finish();

  // Targets that have not ended.
  [[nodiscard]] std::size_t live_targets() const { return targets_.size(); }
  [[nodiscard]] HarvestTotals Totals();
  [[nodiscard]] uint64_t sleeps() const { return sleeps_; }
  // Memory that was handed over and could not be used.
  [[nodiscard]] uint64_t refused_areas() const { return refused_areas_; }
  [[nodiscard]] const std::string& socket_path() const { return socket_path_; }

 private:
  Harvester(WakeListener listener, RecordingWriter* writer);
  [[nodiscard]] Result<void> Add(TargetArea area);
  [[nodiscard]] Result<void> AddHandedOver();
  [[nodiscard]] Result<uint64_t> HarvestForeign();
  [[nodiscard]] Result<void> WriteOwnCounters();
  void SetSleeping(bool sleeping);
  [[nodiscard]] Result<void> Sleep(int milliseconds);

  WakeListener listener_;
  RecordingWriter* writer_;
  std::string socket_path_;
  bool membarrier_;
  std::vector<std::unique_ptr<HarvestedTarget>> targets_;
  std::optional<ForeignStations> foreign_;
  std::vector<SlotEventInfo> slot_events_;
  HarvestTotals ended_;  // of targets that have ended
  uint32_t next_number_ = 1;
  unsigned idle_passes_ = 0;
  bool watch_for_stuck_ = false;
  uint64_t sleeps_ = 0;
  uint64_t refused_areas_ = 0;
};

}  // namespace spanprof::coroutine
