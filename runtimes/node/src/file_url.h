#pragma once

// Modules are known to V8 by their URL, other scripts by their path.

#include <string>
#include <string_view>

namespace spanprof::node {

// "file:///a%20b.js" is "/a b.js"; anything else stays as it is.
std::string PathOfUrl(std::string_view url);

}  // namespace spanprof::node
