#pragma once

// Files in one directory, through its descriptor, so that nothing is looked up twice: written whole
// or not at all, and never through a symbolic link.
//
// Any thread may call these; none is for a signal handler.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spanprof::sending {

// Returns errno's text with its number's meaning and what to do about it, as an Error.
[[nodiscard]] Error FileError(int error_number, const std::string& what);

// Opens a directory that the user named; the path may lead through symbolic links.
[[nodiscard]] Result<UniqueFd> OpenDirectory(const std::string& path);

enum class IfPresent { kReplace, kFail };

// Writes a file with mode 0600: into a temporary file of this directory, which then takes the name.
// A reader sees all of it or nothing. EEXIST if the name is taken and `if_present` is kFail. What
// is there under the name and is not a plain file (a link, a device) is never replaced. Does not
// raise SIGXFSZ: EFBIG where the limit is too small. Not synced to the disk: a profile is not worth
// an fsync in another's program, and a spool file that a crash cut is recognised.
[[nodiscard]] Result<void> WriteFileWhole(int directory, const std::string& name,
                                          std::string_view bytes, IfPresent if_present);

struct DirectoryEntry {
  std::string name;
  std::int64_t modified_ns = 0;  // Unix
  std::uint64_t size = 0;
};

// Lists the plain files that belong to this user, without links, directories and what is gone by
// the time it is looked at. In no order.
[[nodiscard]] Result<std::vector<DirectoryEntry>> ListOwnFiles(int directory);

// Removes a plain file of this user. False if it is something else or could not be removed.
bool RemoveOwnFile(int directory, const std::string& name);

// Removes temporary files that a killed process left more than an hour ago.
void RemoveStaleTemporaryFiles(int directory, const std::vector<DirectoryEntry>& entries,
                               std::int64_t now_ns);

// Reads a plain file of this user, if it has at most `max_size` bytes: EFBIG if it has more.
struct OwnFile {
  UniqueFd fd;
  std::string bytes;
};
[[nodiscard]] Result<OwnFile> ReadOwnFile(int directory, const std::string& name,
                                          std::uint64_t max_size);

}  // namespace spanprof::sending
