#pragma once

// An http or https address, taken apart.
//
//   ParseHttpUrl("http://[::1]:4318/v1/profiles");  // host "::1", port 4318, target "/v1/profiles"
//
// Any thread may call this; it is not for a signal handler.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spanprof {

struct HttpUrl {
  bool is_https = false;
  std::string host;          // without the brackets of an IPv6 address
  std::uint16_t port = 0;    // 80 or 443 where the text has none
  std::string target = "/";  // path and query, as a request line has them
};

// Refuses other schemes, a user name (the text of a URL is shown in messages; a password belongs in
// a header), and characters that have to be percent-encoded. Drops a fragment. The error's message
// says only what is wrong, without the text: the caller knows what of it may be shown.
[[nodiscard]] Result<HttpUrl> ParseHttpUrl(std::string_view text);

}  // namespace spanprof
