#pragma once

// Symbolises a whole profile, wherever it was taken: frames without a function get their names,
// native frames get lines and the functions that were inlined into them. For the command only: see
// dwarf_lines.h.
//
//   Result<void> done = Symbolise(profile, {});
//
// Files are those that the profile's mappings name; one of another build id than the mapping's is
// never used. What could not be found is counted in the profile: symbolise.no_file,
// symbolise.build_id_mismatch, symbolise.no_debug_information (one a mapping), and
// symbolise.unresolved_frames.

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"

namespace spanprof::symbols {

struct SymboliserOptions {
  std::vector<std::string> debug_folders = {"/usr/lib/debug"};
  // Put before the paths of the mappings: a container's root, or a copy of the target's files.
  std::string root;
  bool inlined = true;
  // Of the profile that comes out, which has more frames and names than the one that goes in.
  std::size_t max_memory = std::size_t{1} << 30;
};

// On failure the profile is as it was.
[[nodiscard]] Result<void> Symbolise(profile::Profile& profile, const SymboliserOptions& options);

}  // namespace spanprof::symbols
