#pragma once

// Where the profiles of a recording go: to the file of file=, and to the address of to=.
//
//   file=profile.pb.gz               one profile, at the end
//   file=profile-%t.pb.gz,every=60s  one a minute, the oldest removed
//   file=profile.jfr                 one file that grows by a chunk a minute (every=); the present
//                                    chunk is in profile.jfr.part, a few seconds behind
//   to=...                           one a minute (every=), sent on
//
// Used by the recording's own thread. What cannot be written or sent is counted and told once.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/options.h"
#include "base/result.h"
#include "export/exporter.h"
#include "export/file_rotation.h"
#include "export/send_settings.h"
#include "format/format.h"
#include "format/jfr_file.h"
#include "profile/profile.h"

namespace spanprof::recording {

class RecordingOutput {
 public:
  // Looks at everything that could be wrong with the options, and that the file's directory is
  // there. Nothing is created before the first profile.
  static Result<std::unique_ptr<RecordingOutput>> Open(const Options& options);

  // Nanoseconds between two profiles; 0: one, at the end.
  uint64_t cut_interval_ns() const { return cut_interval_ns_; }
  // Nanoseconds between two looks at what was recorded since the last cut, for TakePart; 0: none.
  uint64_t part_interval_ns() const { return part_interval_ns_; }

  // What came since the last part: kept on disk until the cut that has it too.
  void TakePart(const profile::Profile& part);
  // A whole profile.
  void TakeProfile(const profile::Profile& profile);
  // The last one. Returns when it was written, and sent or given up: within the bound.
  Result<void> TakeLastProfile(const profile::Profile& profile, std::chrono::nanoseconds bound);

  // Counts since Open, for the profile.
  std::map<std::string, uint64_t> counters() const;

  const format::WriteOptions& write_options() const { return write_options_; }

 private:
  RecordingOutput() = default;
  Result<void> WriteFile(const profile::Profile& profile);
  Result<format::JfrFile*> OpenJfr();
  void Send(const profile::Profile& profile);
  void Tell(const Error& error);

  std::string file_;  // empty: none
  OutputFormat file_format_ = OutputFormat::kPprof;
  format::WriteOptions write_options_;
  LogTarget log_ = kDefaultLog;
  uint64_t cut_interval_ns_ = 0;
  uint64_t part_interval_ns_ = 0;
  std::optional<sending::FileRotation> rotation_;
  std::optional<format::JfrFile> jfr_;
  std::shared_ptr<const sending::SendSettings> destination_;
  std::unique_ptr<sending::Exporter> exporter_;
  std::shared_ptr<sending::SendCounters> counters_ = std::make_shared<sending::SendCounters>();
  std::string last_told_;
};

// Writes one profile under a name that may have %t, %p and %n in it; the format is that of the
// name unless one is given. Returns the path.
Result<std::string> WriteProfileFile(const profile::Profile& profile, const std::string& file,
                                     std::optional<OutputFormat> format,
                                     const format::WriteOptions& options);

// The name under which a forked child writes: its pid is added, unless the name has it already.
std::string FileOfForkedChild(const std::string& file);

}  // namespace spanprof::recording
