#include "export/file_rotation.h"

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/printable_text.h"
#include "export/directory_files.h"

namespace spanprof::sending {
namespace {

constexpr unsigned kMaxTries = 1000;

}  // namespace

FileRotation::FileRotation(std::string directory, FileNamePattern pattern, RotationLimits limits,
                           std::shared_ptr<SendCounters> counters)
    : directory_(std::move(directory)),
      pattern_(std::move(pattern)),
      limits_(limits),
      counters_(std::move(counters)) {}

Result<FileRotation> FileRotation::Open(std::string_view file, RotationLimits limits,
                                        std::shared_ptr<SendCounters> counters) {
  const std::size_t slash = file.rfind('/');
  std::string directory = ".";
  if (slash != std::string_view::npos) directory = file.substr(0, std::max(slash, std::size_t{1}));
  if (directory.find('%') != std::string::npos) {
    return Fail(EINVAL, "file=" + Quoted(file) + " has a % in the name of its directory",
                "the time, process id and counter can stand in the file's name only");
  }
  // npos + 1 is 0.
  Result<FileNamePattern> pattern = FileNamePattern::Parse(file.substr(slash + 1));
  if (!pattern) return tl::make_unexpected(pattern.error());
  if (const Result<UniqueFd> opened = OpenDirectory(directory); !opened) {
    return tl::make_unexpected(opened.error());
  }
  return FileRotation(std::move(directory), *std::move(pattern), limits, std::move(counters));
}

Result<std::string> FileRotation::Write(std::string_view bytes, std::int64_t time_ns) {
  Result<std::string> written = [&]() -> Result<std::string> {
    if (pattern_.rotates() && bytes.size() > limits_.max_bytes) {
      return Fail(EFBIG,
                  "a profile of " + std::to_string(bytes.size()) + " bytes is more than the " +
                      std::to_string(limits_.max_bytes) + " that all files together may have",
                  "profile for a shorter time with every=");
    }
    const Result<UniqueFd> directory = OpenDirectory(directory_);
    if (!directory) return tl::make_unexpected(directory.error());
    Result<std::string> name = WriteNamed(directory->get(), bytes, time_ns);
    if (name && pattern_.rotates()) RemoveOldest(directory->get(), *name);
    return name;
  }();
  counters_->Add(written ? SendCounter::kFileWritten : SendCounter::kFileFailed);
  if (!written) return written;
  return directory_ + (directory_ == "/" ? "" : "/") + *written;
}

Result<std::string> FileRotation::WriteNamed(int directory, std::string_view bytes,
                                             std::int64_t time_ns) const {
  FileNamePattern::Values values{.time_ns = time_ns, .pid = getpid(), .counter = 1, .repeat = 1};
  if (!pattern_.rotates()) {
    std::string name = pattern_.Name(values);
    if (Result<void> written = WriteFileWhole(directory, name, bytes, IfPresent::kReplace);
        !written) {
      return tl::make_unexpected(written.error());
    }
    return name;
  }
  if (pattern_.has_counter()) {
    const Result<std::vector<DirectoryEntry>> entries = ListOwnFiles(directory);
    if (!entries) return tl::make_unexpected(entries.error());
    for (const DirectoryEntry& entry : *entries) {
      const auto match = pattern_.Matches(entry.name);
      if (match) values.counter = std::max(values.counter, match->counter + 1);
    }
  }
  for (unsigned tries = 0; tries < kMaxTries; ++tries) {
    std::string name = pattern_.Name(values);
    const Result<void> written = WriteFileWhole(directory, name, bytes, IfPresent::kFail);
    if (written) return name;
    if (written.error().code != EEXIST) return tl::make_unexpected(written.error());
    if (pattern_.has_counter()) {
      ++values.counter;
    } else {
      ++values.repeat;
    }
  }
  return Fail(EEXIST, "each of " + std::to_string(kMaxTries) + " file names was taken",
              "add %n to the name");
}

void FileRotation::RemoveOldest(int directory, const std::string& newest) const {
  const Result<std::vector<DirectoryEntry>> entries = ListOwnFiles(directory);
  if (!entries) return;
  struct Candidate {
    const DirectoryEntry* entry;
    std::uint64_t counter;
  };
  std::vector<Candidate> candidates;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::int64_t now_ns = 0;
  for (const DirectoryEntry& entry : *entries) {
    const auto match = pattern_.Matches(entry.name);
    if (!match) continue;
    ++files;
    bytes += entry.size;
    if (entry.name == newest) {
      now_ns = entry.modified_ns;  // the file system's own clock
    } else {
      candidates.push_back({&entry, match->counter});
    }
  }
  RemoveStaleTemporaryFiles(directory, *entries, now_ns);
  // Files of one tick of the file system's clock are in the order of their numbers, then names.
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.entry->modified_ns, a.counter, a.entry->name) <
           std::tie(b.entry->modified_ns, b.counter, b.entry->name);
  });
  for (const Candidate& candidate : candidates) {
    if (files <= limits_.max_files && bytes <= limits_.max_bytes) break;
    if (!RemoveOwnFile(directory, candidate.entry->name)) continue;
    counters_->Add(SendCounter::kFileRemoved);
    --files;
    bytes -= candidate.entry->size;
  }
}

}  // namespace spanprof::sending
