#pragma once

// What became of everything that was to be sent or written: one counter for each outcome.
//
//   counters->Add(SendCounter::kReportSent);
//   for (const auto& [name, value] : counters->Read()) ...
//
// Any thread may call these. There is no lock in here, so that a fork cannot leave one locked.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace spanprof::sending {

enum class SendCounter : std::uint8_t {
  // What became of a report. Each report counts once in one of these, in the process that made it;
  // kReportLeftToParent is what a forked child counts instead.
  kReportSent,
  kReportSpooled,
  kReportRefused,  // the server does not want it, and would not if it were sent again
  kReportDropped,  // not sent, and no spool or none that could take it
  kReportLeftToParent,
  kReportSentLate,  // sent after Finish() had already spooled or dropped it: it may arrive twice

  // Attempts to send, of reports and of what was spooled.
  kAttempt,
  kRetry,
  kErrorResolve,
  kErrorConnect,
  kErrorConnectTimeout,
  kErrorSendTimeout,
  kErrorReceiveTimeout,
  kErrorTotalTimeout,
  kErrorReset,
  kErrorClosedEarly,
  kErrorGarbage,
  kErrorHeadTooLarge,
  kErrorOther,
  kAnswerRetryable,       // 429, 502, 503 or 504
  kAnswerRetryAfter,      // with a Retry-After that was honoured
  kAnswerBodyCut,         // shorter than its Content-Length said
  kAnswerBodyTooLarge,    // the status stands, the rest was not read
  kAnswerBodyTimeout,     // the same
  kAnswerPartialSuccess,  // the server took the request and refused profiles in it

  kSpoolWritten,
  kSpoolWriteFailed,
  kSpoolUnusable,
  kSpoolSent,
  kSpoolRefused,
  kSpoolCorrupt,
  kSpoolEvicted,
  kSpoolOtherFormat,  // left where it was: it is not in the format of this destination
  kSpoolBusy,         // another process is sending it

  kFileWritten,
  kFileFailed,
  kFileRemoved,

  kThreadFailed,
  kOutOfMemory,
  kCount,
};

[[nodiscard]] std::string_view NameOf(SendCounter counter);

class SendCounters {
 public:
  void Add(SendCounter counter, std::uint64_t amount = 1) {
    // Relaxed: a counter orders nothing.
    values_[static_cast<std::size_t>(counter)].fetch_add(amount, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t Get(SendCounter counter) const {
    return values_[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  }
  // All of them, those that are 0 too.
  [[nodiscard]] std::map<std::string, std::uint64_t> Read() const;

 private:
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(SendCounter::kCount)> values_{};
};

}  // namespace spanprof::sending
