// The head of a request, and which headers may be in it.

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "base/printable_text.h"
#include "export/http_post.h"

namespace spanprof::sending {
namespace {

// These say where the request ends and who may read it: they are not the user's to set.
constexpr std::array<std::string_view, 6> kOwnHeaders = {
    "connection", "content-encoding", "content-length", "expect", "transfer-encoding", "upgrade"};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool IsTokenCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsValueCharacter(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == '\t' || (byte >= 0x20 && byte != 0x7F);
}

}  // namespace

Result<void> CheckHeader(const HttpHeader& header) {
  if (header.name.empty() ||
      !std::all_of(header.name.begin(), header.name.end(), IsTokenCharacter)) {
    return Fail(EINVAL, "the header name " + Quoted(header.name) + " is not one",
                "use letters, digits and dashes");
  }
  if (!std::all_of(header.value.begin(), header.value.end(), IsValueCharacter)) {
    return Fail(EINVAL,
                "the value of the header " + Quoted(header.name) +
                    " has a line break or another control character",
                "leave it out");
  }
  if (std::find(kOwnHeaders.begin(), kOwnHeaders.end(), Lower(header.name)) != kOwnHeaders.end()) {
    return Fail(EINVAL, "the header " + Quoted(header.name) + " is set by the exporter itself",
                "leave it out");
  }
  return {};
}

std::string RequestHead(const HttpRequest& request) {
  const bool is_ipv6 = request.url.host.find(':') != std::string::npos;
  std::string host = is_ipv6 ? "[" + request.url.host + "]" : request.url.host;
  if (request.url.port != 80) host += ":" + std::to_string(request.url.port);
  std::string head = "POST " + request.url.target + " HTTP/1.1\r\n";
  const auto add = [&head](std::string_view name, std::string_view value) {
    head.append(name).append(": ").append(value).append("\r\n");
  };
  const auto add_default = [&](std::string_view name, std::string_view value) {
    const bool is_given = std::any_of(
        request.headers.begin(), request.headers.end(),
        [&](const HttpHeader& h) { return Lower(h.name) == Lower(name) && CheckHeader(h); });
    if (!is_given) add(name, value);
  };
  add_default("Host", host);
  add_default("User-Agent", "spanprof");
  add_default("Content-Type", "application/x-protobuf");
  for (const HttpHeader& header : request.headers) {
    if (CheckHeader(header)) add(header.name, header.value);
  }
  add("Content-Encoding", "gzip");
  add("Content-Length", std::to_string(request.body.size()));
  add("Connection", "close");
  return head + "\r\n";
}

}  // namespace spanprof::sending
