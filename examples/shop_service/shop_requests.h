#pragma once

// What the shop does for a request. Each endpoint spends its time in its own way, so that a profile
// by endpoint has something to tell apart.

#include <cstdint>
#include <string>
#include <string_view>

struct Request {
  std::string_view path;         // "/product/17"
  std::string_view traceparent;  // the W3C header; empty if there was none
  std::string_view tenant;
};

// The body of the answer. Publishes the request's span while it works.
std::string HandleRequest(const Request& request);

// The positions of tags in attributes=.
inline constexpr unsigned kRouteTag = 0;
inline constexpr unsigned kTenantTag = 1;
