#pragma once

// A JFR file that grows while it is recorded, and is whole whenever somebody looks.
//
// The named file holds finished chunks only. What was recorded since the last of them is in a
// sibling, `<name>.part`, as a run of small chunks, each complete in itself. When the chunk is
// finished, the one chunk that holds all of them is appended to the named file, and the part file
// is removed. A killed process loses what it had not flushed, and nothing else:
//
//   killed in AppendPart   the part file has a cut end, which readers leave out
//   killed in FinishChunk  the named file has a cut end; what it was to hold is in the part file
//   killed before unlink   both hold the same samples. Each chunk of a part file says how long the
//                          named file was (spanprof.Part); if that has grown since, the part file
//                          is out of date and not read
//
//   Result<JfrFile> file = JfrFile::Open("profile.jfr");
//   file->AppendPart(*WriteJfr(the_last_seconds, options));   // every few seconds
//   file->FinishChunk(*WriteJfr(the_whole_minute, options));  // every minute
//
// Neither file is followed if it is a symbolic link. A part file is not taken over from another
// user.
//
// One thread at a time; not for signal handlers. In a forked child the object does nothing: it
// refuses to write (EPERM), and is destroyed without touching the files. The child opens a file of
// its own. The lock on the named file belongs to the process (fcntl), so a child does not keep it.

#include <cstdint>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "format/format.h"
#include "profile/profile.h"

namespace spanprof::format {

class JfrFile {
 public:
  // Opens or creates the file, mode 0600. A chunk that was cut at its end is removed, and what a
  // killed process left in the part file is appended. EEXIST: the file is not JFR, and stays as it
  // is. EBUSY: another process is writing it.
  static Result<JfrFile> Open(std::string path);

  // Adds a chunk to the current, unfinished one. After an error the files are as before.
  Result<void> AppendPart(std::string_view chunk);
  // Puts `chunk` into the named file in place of all parts so far. After an error the parts stay.
  Result<void> FinishChunk(std::string_view chunk);

  const std::string& path() const { return path_; }
  uint64_t finished_bytes() const { return finished_bytes_; }
  // What Open did to make the file whole; 0 if there was nothing to do.
  uint64_t removed_bytes() const { return removed_bytes_; }
  uint64_t recovered_bytes() const { return recovered_bytes_; }

 private:
  JfrFile(std::string path, UniqueFd file, pid_t owner);

  Result<void> CheckOwner() const;
  Result<void> MendNamedFile();
  Result<void> TakeOverPartFile();
  Result<void> CreatePartFile();

  std::string path_;
  UniqueFd file_;
  UniqueFd part_;
  pid_t owner_ = 0;
  uint64_t finished_bytes_ = 0;
  uint64_t part_bytes_ = 0;
  uint64_t removed_bytes_ = 0;
  uint64_t recovered_bytes_ = 0;
};

std::string JfrPartPath(std::string_view path);

struct JfrFileContents {
  profile::Profile profile;
  std::string warning;  // what was left out, or empty
};

// Reads the named file and, if there is one that belongs to it, its part file; also while they are
// written.
Result<JfrFileContents> ReadJfrFile(const std::string& path, const ReadLimits& limits);

}  // namespace spanprof::format
