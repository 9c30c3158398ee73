#pragma once

// The counters of a profile as sentences: what its samples do not show, and why.

#include <string>
#include <vector>

#include "profile/profile.h"

namespace spanprof::cli {

// One line each, the most important first; nothing for counters that are 0. Counters without a
// sentence of their own share the last line. Not yet safe for a terminal.
[[nodiscard]] std::vector<std::string> CounterNotes(const profile::Profile& profile);

}  // namespace spanprof::cli
