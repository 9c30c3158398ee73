#pragma once

// Profiles in files, bounded: `file=profile-%t.pb.gz`; see file_name_pattern.h for the name.
//
//   Result<FileRotation> rotation = FileRotation::Open("/var/log/shop/profile-%t.pb.gz", {},
//   counters); if (!rotation) return rotation.error(); Result<std::string> path =
//   rotation->Write(bytes, time_ns);
//
// A file appears whole under its name, with mode 0600. After each, the oldest files that match the
// pattern are removed until both bounds hold: those of earlier processes and of other pids too, but
// only plain files of this user, and never the one just written. A name without %t and %n is
// overwritten each time, and nothing is removed.
//
// One thread at a time. It holds no descriptor between calls, so a fork inherits nothing; parent
// and child may both go on writing.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "export/file_name_pattern.h"
#include "export/send_counters.h"

namespace spanprof::sending {

struct RotationLimits {
  std::uint64_t max_files = 120;  // two hours of a profile a minute
  std::uint64_t max_bytes = std::uint64_t{512} << 20;
};

class FileRotation {
 public:
  // Checks the pattern and that the directory can be opened: ENOENT, EACCES, EINVAL.
  [[nodiscard]] static Result<FileRotation> Open(std::string_view file, RotationLimits limits,
                                                 std::shared_ptr<SendCounters> counters);

  // Returns the path that was written. The directory may be gone or full by now: errno and a hint.
  [[nodiscard]] Result<std::string> Write(std::string_view bytes, std::int64_t time_ns);

 private:
  FileRotation(std::string directory, FileNamePattern pattern, RotationLimits limits,
               std::shared_ptr<SendCounters> counters);

  [[nodiscard]] Result<std::string> WriteNamed(int directory, std::string_view bytes,
                                               std::int64_t time_ns) const;
  void RemoveOldest(int directory, const std::string& newest) const;

  std::string directory_;
  FileNamePattern pattern_;
  RotationLimits limits_;
  std::shared_ptr<SendCounters> counters_;
};

}  // namespace spanprof::sending
