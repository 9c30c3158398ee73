#pragma once

// Where the debug information of a binary is: in it, in a file of the same build id below a debug
// folder, or in the file that its .gnu_debuglink names. A file that does not fit (another build id,
// another checksum) is never taken. Nothing is fetched from a network.

#include <optional>
#include <string>
#include <vector>

#include "base/elf_file.h"

namespace spanprof::symbols {

// `binary`: null if it is not here any more; then only the build id helps. `folders`: such as
// /usr/lib/debug. Returns a path.
[[nodiscard]] std::optional<std::string> FindDebugFile(const ElfFile* binary,
                                                       const std::string& binary_path,
                                                       const std::string& build_id,
                                                       const std::vector<std::string>& folders);

[[nodiscard]] bool HasDebugInformation(const ElfFile& file);

}  // namespace spanprof::symbols
