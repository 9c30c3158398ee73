#pragma once

// Tags whose names come from a file.

#include <optional>
#include <string_view>

#include "profile/profile.h"

namespace spanprof::format {

// In front of a tag's name where the format gives the plain name another meaning.
inline constexpr std::string_view kAttributePrefix = "attribute.";

// The position of the tag of this name; a new one if there is none. Nothing if all are taken.
std::optional<unsigned> FindOrAddTag(profile::Profile& profile, std::string_view name);

}  // namespace spanprof::format
