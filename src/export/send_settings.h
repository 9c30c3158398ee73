#pragma once

// Where profiles are sent, and how: from the options to=, header= and spool=, and from
// OpenTelemetry's variables.
//
//   to=otlp+http://collector:4318     OTLP; /v1development/profiles is added if there is no path
//   to=http://collector:4318          the same
//   to=pprof+http://host/ingest       a pprof file as the body
//   to=otlp                           OTLP to where OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT (as it is)
//   or
//                                     OTEL_EXPORTER_OTLP_ENDPOINT (plus /v1development/profiles)
//                                     says, or http://localhost:4318
//
// The variables alone make nothing be sent: they are in many programs' environments, for their
// traces, and sending profiles there unasked would be wrong.
//
// OTEL_EXPORTER_OTLP_HEADERS and OTEL_EXPORTER_OTLP_PROFILES_HEADERS go with OTLP, under header=.
// They often hold a key for the endpoint that is set beside them; to another host that to= names
// they are not sent, and a warning says so. OTEL_EXPORTER_OTLP_TIMEOUT and
// OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT (milliseconds) bound each attempt of OTLP.
//
// Any thread may call these; none is for a signal handler.

#include <optional>
#include <string>
#include <vector>

#include "base/http_url.h"
#include "base/options.h"
#include "base/result.h"
#include "export/http_post.h"
#include "export/spool.h"

namespace spanprof::sending {

struct RetryPolicy {
  std::chrono::nanoseconds first = std::chrono::seconds(1);  // doubled each time, less up to a half
  std::chrono::nanoseconds longest = std::chrono::seconds(15);
  std::chrono::nanoseconds longest_retry_after = std::chrono::seconds(60);
  std::chrono::nanoseconds deadline = std::chrono::seconds(50);  // of a report, from its start
};

struct SendSettings {
  OutputFormat format = OutputFormat::kOtlp;  // what the destination takes: kOtlp or kPprof
  HttpUrl url;
  std::vector<HttpHeader> headers;  // may be secret: never log them
  HttpTimeouts timeouts;
  RetryPolicy retry;
  std::optional<std::string> spool;
  SpoolLimits spool_limits;
  std::vector<std::string> warnings;  // what of the environment was not used, and why
};

// Empty: not set, as the OpenTelemetry specification has it.
struct SendEnvironment {
  std::string endpoint{};           // OTEL_EXPORTER_OTLP_ENDPOINT
  std::string profiles_endpoint{};  // OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT
  std::string headers{};
  std::string profiles_headers{};  // instead of `headers`, if set
  std::string timeout{};
  std::string profiles_timeout{};
};

// Absent if the options have no to=. EPROTONOSUPPORT for https; EINVAL for what is not valid.
[[nodiscard]] Result<std::optional<SendSettings>> MergeSendSettings(
    const Options& options, const SendEnvironment& environment);

// Does the same with this process's environment. It calls getenv(), so no other thread may be
// changing the environment meanwhile.
[[nodiscard]] Result<std::optional<SendSettings>> ReadSendSettings(const Options& options);

}  // namespace spanprof::sending
