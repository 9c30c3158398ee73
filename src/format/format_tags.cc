#include "format/format_tags.h"

#include <algorithm>

namespace spanprof::format {

std::optional<unsigned> FindOrAddTag(profile::Profile& profile, std::string_view name) {
  auto& names = profile.attribute_names;
  const auto found = std::find(names.begin(), names.end(), name);
  const auto position = static_cast<unsigned>(found - names.begin());
  if (position >= profile::kTagCount) return std::nullopt;
  if (found == names.end()) names.emplace_back(name);
  return position;
}

}  // namespace spanprof::format
