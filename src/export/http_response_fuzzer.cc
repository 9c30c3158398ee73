// Fuzzes the answer of a server.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "export/http_response.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using spanprof::sending::ResponseState;
  const std::string bytes(data, data + size);
  const auto parsed = spanprof::sending::ParseHttpResponse(bytes, 784111777);
  if (parsed.state == ResponseState::kComplete) {
    Require(parsed.response.status >= 200 && parsed.response.status <= 599);
    Require(parsed.response.body_offset <= bytes.size());
    const auto after = parsed.response.retry_after;
    Require(!after || (after->count() >= 0 && after->count() <= 86400));
    // What arrives later does not change the head.
    const auto longer = spanprof::sending::ParseHttpResponse(bytes + "x", 784111777);
    Require(longer.state == ResponseState::kComplete);
    Require(longer.response.status == parsed.response.status);
    Require(longer.response.body_offset == parsed.response.body_offset);
  }
  // Garbage does not become an answer by what follows it.
  const auto half = spanprof::sending::ParseHttpResponse(bytes.substr(0, size / 2), 784111777);
  if (half.state == ResponseState::kGarbage) Require(parsed.state == ResponseState::kGarbage);
  (void)spanprof::sending::SaysPartialSuccess(bytes);
  return 0;
}
