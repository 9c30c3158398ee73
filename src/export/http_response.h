#pragma once

// The answer to an HTTP request, as far as an exporter needs it. The server is not trusted: it may
// send anything. Pure functions; any thread may call them, none is for a signal handler.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string_view>

namespace spanprof::sending {

struct HttpResponse {
  int status = 0;                          // 200 to 599
  std::size_t body_offset = 0;             // where the body begins in the bytes that were parsed
  std::optional<std::uint64_t> body_size;  // by Content-Length, and 0 where there is never a body
  bool chunked = false;                    // the body is in chunks, whose sizes nobody looks at
  std::optional<std::chrono::seconds> retry_after;  // as it was sent: at most a day
};

enum class ResponseState {
  kIncomplete,  // so far it could become an answer
  kGarbage,     // not an HTTP/1 answer
  kComplete,    // the head is complete
};

struct ParsedResponse {
  ResponseState state = ResponseState::kIncomplete;
  HttpResponse response;
};

// Parses all that was received so far, from its beginning. Skips answers with a status of 100 to
// 199, which come before the real one. `now` is for a Retry-After that is a date.
[[nodiscard]] ParsedResponse ParseHttpResponse(std::string_view bytes, std::time_t now);

// Whether an OTLP server's answer (an ExportProfilesServiceResponse) says that profiles were
// refused.
[[nodiscard]] bool SaysPartialSuccess(std::string_view body);

}  // namespace spanprof::sending
