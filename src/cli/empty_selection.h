#pragma once

// What to say when a filter leaves nothing of a profile: which condition fits no sample, and which
// values there are instead.

#include "base/result.h"
#include "profile/profile.h"
#include "profile/profile_query.h"

namespace spanprof::cli {

// `filter` selects nothing of `profile`. The code is ENOENT.
[[nodiscard]] Error ExplainEmptySelection(const profile::Profile& profile,
                                          const profile::Filter& filter);

}  // namespace spanprof::cli
