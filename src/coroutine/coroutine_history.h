#pragma once

// What became of each coroutine in a recording: where it ran and how long, where it waits, on whom,
// and whether it ended.
//
//   Result<CoroutineHistory> history = CoroutineHistory::Read("run.coro");
//   for (const Coroutine& coroutine : history->coroutines()) ...

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "coroutine/recording.h"

namespace spanprof::coroutine {

enum class CoroutineStatus { kNew, kRunning, kSuspended, kYielded, kDone, kDead };

struct Coroutine {
  uint32_t target = 0;
  uint64_t probe_id = 0;  // 0: never described
  std::string name;       // may be empty
  bool adopted = false;
  bool finished = false;  // its end was seen: one that is destroyed before was cancelled
  CoroutineStatus status = CoroutineStatus::kNew;
  uint64_t birth = 0;  // nanoseconds, CLOCK_MONOTONIC, as all times here
  uint64_t since = 0;  // of the status
  uint32_t place = 0;  // where it was suspended last; 0: unknown
  uint64_t tid = 0;    // where it ran last
  uint64_t resumes = 0;
  uint64_t migrations = 0;  // resumes on another thread than the one before
  uint64_t run_nanoseconds = 0;
  uint64_t longest_run = 0;
  uint64_t longest_run_began = 0;
  uint32_t longest_run_from = 0;          // the place it was resumed at; 0: its start
  std::optional<std::size_t> awaits;      // index of the coroutine that it waits for
  std::optional<std::size_t> awaited_by;  // index
};

// Waits that have ended, by place.
struct PlaceWaits {
  uint64_t count = 0;
  uint64_t longest = 0;
};

// Times in powers of two of nanoseconds: bucket i has those below 2^i.
struct LatencyHistogram {
  uint64_t buckets[64] = {};
  uint64_t count = 0;
  uint64_t longest = 0;
  std::optional<std::size_t> longest_of;  // index of the coroutine

  void Add(uint64_t nanoseconds, std::size_t coroutine);
  // An upper bound of the quantile.
  [[nodiscard]] uint64_t Quantile(double part) const;
};

class CoroutineHistory;

// One event, in the order of their time.
struct HistoryEvent {
  uint64_t number = 0;       // from 1
  uint64_t nanoseconds = 0;  // CLOCK_MONOTONIC
  std::size_t coroutine = 0;
  uint64_t tid = 0;
  uint32_t kind = 0;
  uint32_t place = 0;                  // 0: none
  std::optional<std::size_t> awaited;  // whom it waits for, of kind "awaits"
};

// A suspension that has ended.
struct HistoryWait {
  std::size_t coroutine = 0;
  uint32_t place = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t ready = 0;  // when somebody said that it can run; 0: nobody did
  uint64_t tid = 0;    // that resumed it
};

// Sees what happens while a history is being read, so that nobody has to keep all of it. What
// the recording says of targets and places is known by then; coroutines up to the present one.
class HistoryObserver {
 public:
  virtual ~HistoryObserver() = default;
  virtual void OnEvent(const CoroutineHistory&, const HistoryEvent&) {}
  virtual void OnWait(const CoroutineHistory&, const HistoryWait&) {}
};

// How an event's kind is called, "resume" say.
[[nodiscard]] const char* EventKindText(uint32_t kind);
[[nodiscard]] const char* StatusText(CoroutineStatus status);

class CoroutineHistory {
 public:
  [[nodiscard]] static Result<CoroutineHistory> Read(const std::string& path,
                                                     HistoryObserver* observer = nullptr);
  // Several recordings, of one process or of many, as if they were one. Their targets are numbered
  // anew. What is in two of them, since a harvester was killed and the next went on, counts once.
  [[nodiscard]] static Result<CoroutineHistory> Read(const std::vector<std::string>& paths,
                                                     HistoryObserver* observer = nullptr);

  [[nodiscard]] const std::vector<Coroutine>& coroutines() const { return coroutines_; }
  [[nodiscard]] const std::vector<TargetInfo>& targets() const { return targets_; }
  // By target and number.
  [[nodiscard]] const std::map<std::pair<uint32_t, uint32_t>, PlaceInfo>& places() const {
    return places_;
  }
  // "file:line function", "start" for 0.
  [[nodiscard]] std::string PlaceText(uint32_t target, uint32_t place) const;
  // Its name, or the function that it was seen in: what it has in common with others.
  [[nodiscard]] std::string GroupName(const Coroutine& coroutine) const;
  // The same and its number.
  [[nodiscard]] std::string CoroutineText(const Coroutine& coroutine) const;
  [[nodiscard]] const PlaceWaits& WaitsAt(uint32_t target, uint32_t place) const;
  // From mark_coroutine_ready to the resume.
  [[nodiscard]] const LatencyHistogram& latency() const { return latency_; }
  [[nodiscard]] const std::map<std::string, uint64_t>& counters() const { return counters_; }
  [[nodiscard]] uint64_t events() const { return events_; }
  [[nodiscard]] uint64_t end() const { return end_; }  // the last time known
  [[nodiscard]] bool complete() const { return complete_; }
  // Events that are known to be missing, whatever the reason.
  [[nodiscard]] uint64_t lost() const;

 private:
  friend class HistoryBuilder;
  std::vector<Coroutine> coroutines_;
  std::vector<TargetInfo> targets_;
  std::map<std::pair<uint32_t, uint32_t>, PlaceInfo> places_;
  std::map<std::pair<uint32_t, uint32_t>, PlaceWaits> waits_;
  std::map<std::string, uint64_t> counters_;
  LatencyHistogram latency_;
  uint64_t events_ = 0;
  uint64_t end_ = 0;
  bool complete_ = true;
};

}  // namespace spanprof::coroutine
