#pragma once

// The exporter's thread without the thread: one report with its repetitions, and then the spool.
// These block; see http_post.h.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "export/send_counters.h"
#include "export/send_deadline.h"
#include "export/send_settings.h"

namespace spanprof::sending {

enum class Verdict : std::uint8_t {
  kSent,
  kRefused,  // it would be refused again
  kFailed,   // it may go better later
};

struct SendResult {
  Verdict verdict = Verdict::kFailed;
  std::string message;  // of the last failure
};

// How long to wait before the attempt after `failures` failures (from 1 on): doubling, with jitter
// from `random` (any 64 bits) that takes off up to a half, and at least `retry_after`, as far as
// the policy lets a server decide.
[[nodiscard]] std::chrono::nanoseconds BackOff(const RetryPolicy& policy, unsigned failures,
                                               std::uint64_t random,
                                               std::chrono::nanoseconds retry_after);

// Posts `body`, which is compressed, until it is taken or refused or the deadline is over.
[[nodiscard]] SendResult SendWithRetry(const SendSettings& settings, std::string_view body,
                                       const SendDeadline& deadline, SendCounters& counters);

// Sends what is in the spool, oldest first, each once, up to the first that fails or the deadline.
void SendSpooled(const SendSettings& settings, const SendDeadline& deadline,
                 const std::shared_ptr<SendCounters>& counters);

}  // namespace spanprof::sending
