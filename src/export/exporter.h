#pragma once

// Sends one finished report to where to= says, from a thread of its own, and is done: sent,
// refused, spooled or dropped, each with a counter. The program that is profiled pays with nothing
// else.
//
//   std::unique_ptr<Exporter> exporter = Exporter::Start(settings, std::move(report), counters);
//   ...                                                   // a minute later, or at exit:
//   const Settlement settlement = exporter->Finish(steady_clock::now() + 2s);
//
// An exporter lives for one report. The next report gets another, so that a fork can never inherit
// half of one: in a child that was forked meanwhile, Finish() and the destructor do nothing, the
// report stays the parent's, and the child starts exporters of its own. (What the child does keep
// until it ends or execs is a copy of a descriptor or two; the parent shuts the connection down and
// lets the lock go explicitly, so the copies hold up nothing.)
//
// The thread compresses, posts, and repeats that for 429, 502, 503, 504 and connections that fail
// or are answered with something else than HTTP: with back-off, jitter and Retry-After, up to the
// report's deadline. Once a report was sent, what is in the spool follows, oldest first, as long as
// that goes well and there is time. What could not be sent goes to the spool, or is dropped if
// there is none. What the server refuses otherwise (400, 401, 413) is not kept: it would refuse it
// again.
//
// Delivery is at least once: a server that takes a report and does not say so gets it again.
//
// Any one thread may call the members; none is for a signal handler. Nothing here throws, raises a
// signal, or takes one meant for the program: the thread blocks them all.

#include <cstdint>
#include <memory>
#include <string>

#include "export/send_counters.h"
#include "export/send_deadline.h"
#include "export/send_settings.h"
#include "export/spool_file.h"

namespace spanprof::sending {

enum class Outcome : std::uint8_t {
  kSent,
  kRefused,
  kSpooled,
  kDropped,
  kLeftToParent,  // this process is a fork of the one that sends it
  kStillWriting,  // Finish() ran out of time while the spool's disk kept the thread waiting
};

struct Settlement {
  Outcome outcome = Outcome::kDropped;
  std::string message;  // of the last failure, for a log; empty if there was none
};

class Exporter {
 public:
  // Never fails: if no thread can be started, the report is spooled or dropped at once.
  [[nodiscard]] static std::unique_ptr<Exporter> Start(std::shared_ptr<const SendSettings> settings,
                                                       Report report,
                                                       std::shared_ptr<SendCounters> counters);

  // Like Finish() without any time: what is not sent by now is spooled or dropped.
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  // Whether the report is settled, so that Finish() returns at once. (The thread may still be at
  // the spool.)
  [[nodiscard]] bool is_settled() const;

  // Waits until the report is settled, but not beyond `deadline`: the last part of the time is for
  // the spool. Returns the same again when it is called again.
  Settlement Finish(SteadyTime deadline);

 private:
  class Work;
  explicit Exporter(std::shared_ptr<Work> work);

  std::shared_ptr<Work> work_;
  bool left_to_parent_ = false;
};

}  // namespace spanprof::sending
