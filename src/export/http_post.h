#pragma once

// One HTTP/1.1 POST over TCP, without TLS, made for a profiler inside another's program: every step
// has a time-out, no signal is raised, and no server can make it read or wait for more than is said
// here.
//
//   const PostOutcome outcome = HttpPost(request, timeouts, deadline);
//   if (outcome.result == PostResult::kAnswered && outcome.response.status == 200) ...
//
// It blocks: for a thread of its own. Looking up a host name (getaddrinfo) can block past every
// time-out, as long as the system's resolver likes; an address in digits never does.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/http_url.h"
#include "base/options.h"
#include "base/result.h"
#include "export/http_response.h"
#include "export/send_deadline.h"

namespace spanprof::sending {

// Of the answer, head and body together. What is beyond is not read.
inline constexpr std::size_t kMaxResponseBytes = std::size_t{64} << 10;

struct HttpTimeouts {
  std::chrono::nanoseconds connect = std::chrono::seconds(5);   // for each address of the host
  std::chrono::nanoseconds send = std::chrono::seconds(10);     // without any progress
  std::chrono::nanoseconds receive = std::chrono::seconds(10);  // without any progress
  std::chrono::nanoseconds total = std::chrono::seconds(10);  // a drip of bytes does not extend it
};

struct HttpRequest {
  HttpUrl url;
  std::vector<HttpHeader> headers;  // over those that are sent anyway
  std::string_view body;
};

enum class PostResult : std::uint8_t {
  kAnswered,  // with a status; the body may be incomplete, see PostOutcome::body
  kUnresolved,
  kConnectFailed,
  kConnectTimedOut,
  kSendTimedOut,
  kReceiveTimedOut,
  kTotalTimedOut,
  kReset,
  kClosedEarly,   // closed without an answer, or in its head
  kGarbage,       // the answer is not HTTP
  kHeadTooLarge,  // no end of the head within kMaxResponseBytes
  kFailed,        // anything else: no memory, no descriptors
};

enum class BodyResult : std::uint8_t { kComplete, kCut, kTooLarge, kTimedOut };

struct PostOutcome {
  PostResult result = PostResult::kFailed;
  int error_number = 0;  // errno where there was one
  HttpResponse response;
  BodyResult body_result = BodyResult::kComplete;
  std::string body;
  std::string message;  // for people, with the host but without headers
};

// EINVAL for a name that is not a token, a value with a line break or another control character (it
// could end the header and begin another), and headers that say where the request ends. The value
// is not in the message.
[[nodiscard]] Result<void> CheckHeader(const HttpHeader& header);

// Returns the request's head. Headers that CheckHeader() refuses are left out.
[[nodiscard]] std::string RequestHead(const HttpRequest& request);

[[nodiscard]] PostOutcome HttpPost(const HttpRequest& request, const HttpTimeouts& timeouts,
                                   const SendDeadline& deadline);

}  // namespace spanprof::sending
