#include "base/http_url.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <system_error>

namespace spanprof {
namespace {

bool ConsumePrefixIgnoringCase(std::string_view& text, std::string_view prefix) {
  if (text.size() < prefix.size()) return false;
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    const char c = text[i];
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower != prefix[i]) return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

bool IsVisibleAscii(char c) { return c > ' ' && c < '\x7F'; }

bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

bool IsAddressCharacter(char c) { return IsHostCharacter(c) || c == ':' || c == '%'; }

tl::unexpected<Error> BadHost() {
  return Fail(EINVAL, "has no valid host name or address", "such as http://localhost:4318");
}

}  // namespace

Result<HttpUrl> ParseHttpUrl(std::string_view text) {
  HttpUrl url;
  if (ConsumePrefixIgnoringCase(text, "https://")) {
    url.is_https = true;
  } else if (!ConsumePrefixIgnoringCase(text, "http://")) {
    return Fail(EINVAL, "does not begin with http:// or https://", "such as http://localhost:4318");
  }
  if (!std::all_of(text.begin(), text.end(), IsVisibleAscii)) {
    return Fail(EINVAL, "has a space or another character that a URL may not have",
                "percent-encode it, a space as %20");
  }
  text = text.substr(0, text.find('#'));
  std::string_view authority = text.substr(0, text.find_first_of("/?"));
  const std::string_view target = text.substr(authority.size());
  if (authority.find('@') != std::string_view::npos) {
    return Fail(EINVAL, "has a user name",
                "leave it out and give header=Authorization:Basic ... instead");
  }

  if (!authority.empty() && authority.front() == '[') {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return BadHost();
    url.host = authority.substr(1, end - 1);
    authority.remove_prefix(end + 1);
    if (!std::all_of(url.host.begin(), url.host.end(), IsAddressCharacter)) return BadHost();
    if (!authority.empty() && authority.front() != ':') return BadHost();
  } else {
    url.host = authority.substr(0, authority.find(':'));
    authority.remove_prefix(url.host.size());
    if (!std::all_of(url.host.begin(), url.host.end(), IsHostCharacter)) return BadHost();
  }
  if (url.host.empty()) return BadHost();

  url.port = url.is_https ? 443 : 80;
  if (!authority.empty()) {
    authority.remove_prefix(1);
    const char* const begin = authority.data();
    const char* const end = begin + authority.size();
    const auto [rest, error] = std::from_chars(begin, end, url.port);
    if (error != std::errc() || rest != end || url.port == 0) {
      return Fail(EINVAL, "has a port that is not a number from 1 to 65535",
                  "such as http://localhost:4318");
    }
  }

  if (!target.empty()) url.target = target;
  if (url.target.front() == '?') url.target.insert(0, 1, '/');
  return url;
}

}  // namespace spanprof
