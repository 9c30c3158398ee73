#include "export/report_sending.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <unistd.h>

#include "export/http_post.h"
#include "export/spool.h"

namespace spanprof::sending {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

SendCounter CounterOf(PostResult result) {
  switch (result) {
    case PostResult::kUnresolved:
      return SendCounter::kErrorResolve;
    case PostResult::kConnectFailed:
      return SendCounter::kErrorConnect;
    case PostResult::kConnectTimedOut:
      return SendCounter::kErrorConnectTimeout;
    case PostResult::kSendTimedOut:
      return SendCounter::kErrorSendTimeout;
    case PostResult::kReceiveTimedOut:
      return SendCounter::kErrorReceiveTimeout;
    case PostResult::kTotalTimedOut:
      return SendCounter::kErrorTotalTimeout;
    case PostResult::kReset:
      return SendCounter::kErrorReset;
    case PostResult::kClosedEarly:
      return SendCounter::kErrorClosedEarly;
    case PostResult::kGarbage:
      return SendCounter::kErrorGarbage;
    case PostResult::kHeadTooLarge:
      return SendCounter::kErrorHeadTooLarge;
    case PostResult::kAnswered:
    case PostResult::kFailed:
      break;
  }
  return SendCounter::kErrorOther;
}

void CountBody(const SendSettings& settings, const PostOutcome& outcome, SendCounters& counters) {
  switch (outcome.body_result) {
    case BodyResult::kComplete:
      break;
    case BodyResult::kCut:
      counters.Add(SendCounter::kAnswerBodyCut);
      break;
    case BodyResult::kTooLarge:
      counters.Add(SendCounter::kAnswerBodyTooLarge);
      break;
    case BodyResult::kTimedOut:
      counters.Add(SendCounter::kAnswerBodyTimeout);
      break;
  }
  if (settings.format == OutputFormat::kOtlp && outcome.response.status == 200 &&
      SaysPartialSuccess(outcome.body)) {
    counters.Add(SendCounter::kAnswerPartialSuccess);
  }
}

bool IsRetryable(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

struct Attempt {
  SendResult result;
  nanoseconds retry_after{0};
};

Attempt SendOnce(const SendSettings& settings, std::string_view body, const SendDeadline& deadline,
                 SendCounters& counters) {
  counters.Add(SendCounter::kAttempt);
  const HttpRequest request{.url = settings.url, .headers = settings.headers, .body = body};
  const PostOutcome outcome = HttpPost(request, settings.timeouts, deadline);
  if (outcome.result != PostResult::kAnswered) {
    counters.Add(CounterOf(outcome.result));
    return {{Verdict::kFailed, outcome.message}};
  }
  CountBody(settings, outcome, counters);
  const int status = outcome.response.status;
  if (status >= 200 && status < 300) return {{Verdict::kSent, {}}};
  std::string message = "the server answered with status " + std::to_string(status);
  if (!IsRetryable(status)) return {{Verdict::kRefused, std::move(message)}};
  counters.Add(SendCounter::kAnswerRetryable);
  Attempt attempt{{Verdict::kFailed, std::move(message)}};
  if (outcome.response.retry_after) {
    counters.Add(SendCounter::kAnswerRetryAfter);
    attempt.retry_after = *outcome.response.retry_after;
  }
  return attempt;
}

// Good enough to keep a thousand processes from knocking in step.
std::uint64_t Random() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::uint64_t x =
      static_cast<std::uint64_t>(now.tv_nsec) ^ (static_cast<std::uint64_t>(getpid()) << 32);
  x += 0x9E3779B97F4A7C15U;  // splitmix64
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

}  // namespace

nanoseconds BackOff(const RetryPolicy& policy, unsigned failures, std::uint64_t random,
                    nanoseconds retry_after) {
  nanoseconds wait = std::min(policy.first, policy.longest);
  for (unsigned i = 1; i < failures && wait < policy.longest; ++i) {
    wait = std::min(wait * 2, policy.longest);
  }
  const auto half = static_cast<std::uint64_t>(wait.count()) / 2;
  if (half != 0) wait -= nanoseconds(random % half);
  return std::max(wait, std::min(retry_after, policy.longest_retry_after));
}

SendResult SendWithRetry(const SendSettings& settings, std::string_view body,
                         const SendDeadline& deadline, SendCounters& counters) {
  for (unsigned failures = 1;; ++failures) {
    Attempt attempt = SendOnce(settings, body, deadline, counters);
    if (attempt.result.verdict != Verdict::kFailed) return attempt.result;
    const SteadyTime next =
        steady_clock::now() + BackOff(settings.retry, failures, Random(), attempt.retry_after);
    // The spool need not wait for an attempt that will not be made.
    if (next >= deadline.at()) return attempt.result;
    (void)deadline.Wait(-1, 0, next);
    if (deadline.IsOver()) return attempt.result;
    counters.Add(SendCounter::kRetry);
  }
}

void SendSpooled(const SendSettings& settings, const SendDeadline& deadline,
                 const std::shared_ptr<SendCounters>& counters) {
  if (!settings.spool || deadline.IsOver()) return;
  Result<Spool> spool = Spool::Open(*settings.spool, settings.spool_limits, counters);
  if (!spool) return;
  while (!deadline.IsOver()) {
    std::optional<Spool::Item> item = spool->TakeOldest(settings.format);
    if (!item) return;
    const SendResult result = SendOnce(settings, item->report.bytes, deadline, *counters).result;
    if (result.verdict == Verdict::kFailed) return Spool::PutBack(*item);
    spool->Remove(*item);
    counters->Add(result.verdict == Verdict::kSent ? SendCounter::kSpoolSent
                                                   : SendCounter::kSpoolRefused);
  }
}

}  // namespace spanprof::sending
