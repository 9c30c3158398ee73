#pragma once

// pprof has no place for resource attributes, counters, periods of several kinds, or the positions
// of tags. Its comments do: a line `key=value` each, which `go tool pprof -comments` shows. Ours
// begin with "spanprof."; every other is a resource attribute.

#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace spanprof::format::pprof {

std::vector<std::string> CommentsOf(const profile::Profile& profile);

// Puts into the profile what the comment says. A comment that is not `key=value` becomes the
// resource attribute "pprof.comment".
void ReadComment(std::string_view comment, profile::Profile& profile);

}  // namespace spanprof::format::pprof
