#include "format/format_locations.h"

#include <utility>

namespace spanprof::format {

bool LocationTable::BelongsTo(profile::FrameId inlined, profile::FrameId below) const {
  const profile::Frame& a = profile_.frames()[inlined];
  const profile::Frame& b = profile_.frames()[below];
  return a.inlined && a.kind == b.kind && a.mapping == b.mapping && a.address == b.address &&
         a.function != profile::kNone && b.function != profile::kNone;
}

std::vector<uint32_t> LocationTable::LocationsOf(profile::StackId stack) {
  const std::vector<profile::FrameId> frames = profile_.FramesOf(stack);
  std::vector<uint32_t> numbers;
  std::vector<profile::FrameId> location;
  for (size_t i = 0; i < frames.size(); ++i) {
    location.push_back(frames[i]);
    if (i + 1 < frames.size() && BelongsTo(frames[i], frames[i + 1])) continue;
    const auto [entry, is_new] =
        numbers_.emplace(location, static_cast<uint32_t>(locations_.size() + 1));
    if (is_new) locations_.push_back(location);
    numbers.push_back(entry->second);
    location.clear();
  }
  return numbers;
}

}  // namespace spanprof::format
