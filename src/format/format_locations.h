#pragma once

// pprof and OTLP know locations where the model knows frames: a location is an address, and the
// functions inlined there are its lines, the innermost first.

#include <cstdint>
#include <map>
#include <vector>

#include "profile/profile.h"

namespace spanprof::format {

class LocationTable {
 public:
  explicit LocationTable(const profile::Profile& profile) : profile_(profile) {}

  // The locations of a stack, innermost first, by number from 1.
  std::vector<uint32_t> LocationsOf(profile::StackId stack);

  // Each the frames of a location, innermost first; the last one is not inlined. A frame that is
  // marked as inlined but does not share kind, mapping and address with the frame below it, or has
  // no function, is a location of its own. By number, less 1.
  const std::vector<std::vector<profile::FrameId>>& locations() const { return locations_; }

 private:
  bool BelongsTo(profile::FrameId inlined, profile::FrameId below) const;

  const profile::Profile& profile_;
  std::map<std::vector<profile::FrameId>, uint32_t> numbers_;
  std::vector<std::vector<profile::FrameId>> locations_;
};

}  // namespace spanprof::format
