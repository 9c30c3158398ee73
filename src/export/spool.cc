#include "export/spool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <sys/file.h>
#include <sys/stat.h>

#include "base/printable_text.h"
#include "export/directory_files.h"

namespace spanprof::sending {
namespace {

constexpr std::string_view kSuffix = ".spool";
constexpr std::string_view kCorruptSuffix = ".corrupt";
constexpr std::size_t kTimeDigits = 20;
constexpr std::uint64_t kMaxHeadBytes = 256;

// The time comes first, so that the order of names is the order of profiles.
std::string NewName(std::int64_t time_ns) {
  static std::atomic<std::uint64_t> counter{0};
  std::array<char, kTimeDigits + 1> time{};
  std::snprintf(time.data(), time.size(), "%020lld",
                static_cast<long long>(std::max<std::int64_t>(time_ns, 0)));
  // The clock tells apart two processes of one pid, before and after a restart in a container.
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return std::string(time.data()) + "-" + std::to_string(getpid()) + "-" + std::to_string(now) +
         "-" + std::to_string(counter.fetch_add(1, std::memory_order_relaxed)) +
         std::string(kSuffix);
}

bool IsSpoolName(std::string_view name) {
  if (!name.ends_with(kSuffix) || name.size() <= kTimeDigits + kSuffix.size()) return false;
  name.remove_suffix(kSuffix.size());
  return name.find_first_not_of("0123456789") == kTimeDigits && name[kTimeDigits] == '-' &&
         name.find_first_not_of("0123456789-") == std::string_view::npos;
}

bool IsCorruptName(std::string_view name) {
  return name.ends_with(kCorruptSuffix) &&
         IsSpoolName(name.substr(0, name.size() - kCorruptSuffix.size()));
}

bool ByName(const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; }

}  // namespace

Spool::Spool(UniqueFd directory, SpoolLimits limits, std::shared_ptr<SendCounters> counters)
    : directory_(std::move(directory)), limits_(limits), counters_(std::move(counters)) {}

Result<Spool> Spool::Open(const std::string& directory, SpoolLimits limits,
                          std::shared_ptr<SendCounters> counters) {
  std::string path = directory;
  // "link/" would be followed.
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::string what = "cannot use spool=" + Quoted(path);
  const auto fail = [&](int code, const std::string& problem, std::string hint) {
    counters->Add(SendCounter::kSpoolUnusable);
    return Fail(code, what + ": " + problem, std::move(hint));
  };
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    counters->Add(SendCounter::kSpoolUnusable);
    return tl::make_unexpected(FileError(errno, what));
  }
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    const int error_number = errno;
    struct stat status{};
    if (lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
      return fail(ELOOP, "it is a symbolic link", "give the directory that it leads to");
    }
    counters->Add(SendCounter::kSpoolUnusable);
    return tl::make_unexpected(FileError(error_number, what));
  }
  struct stat status{};
  if (fstat(fd.get(), &status) != 0) {
    counters->Add(SendCounter::kSpoolUnusable);
    return tl::make_unexpected(FileError(errno, what));
  }
  if (status.st_uid != geteuid()) {
    return fail(EPERM,
                "it belongs to user " + std::to_string(status.st_uid) + ", not to user " +
                    std::to_string(geteuid()),
                "name a directory of this user, or one that does not exist yet");
  }
  if ((status.st_mode & 077) != 0) {
    return fail(EPERM, "others may look into it", "run: chmod 700 " + path);
  }
  return Spool(std::move(fd), limits, std::move(counters));
}

Result<void> Spool::Add(const Report& report) {
  const std::string bytes = WriteSpoolFile(report);
  Result<void> written = [&]() -> Result<void> {
    if (bytes.size() > limits_.max_bytes || limits_.max_files == 0) {
      return Fail(EFBIG,
                  "a report of " + std::to_string(bytes.size()) +
                      " bytes is more than the spool's " + std::to_string(limits_.max_bytes),
                  "profile for a shorter time with every=");
    }
    MakeRoom(bytes.size());
    return WriteFileWhole(directory_.get(), NewName(report.time_ns), bytes, IfPresent::kFail);
  }();
  counters_->Add(written ? SendCounter::kSpoolWritten : SendCounter::kSpoolWriteFailed);
  return written;
}

void Spool::MakeRoom(std::uint64_t size) {
  Result<std::vector<DirectoryEntry>> entries = ListOwnFiles(directory_.get());
  if (!entries) return;
  const std::int64_t now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
  RemoveStaleTemporaryFiles(directory_.get(), *entries, now_ns);
  std::erase_if(*entries, [](const DirectoryEntry& entry) {
    return !IsSpoolName(entry.name) && !IsCorruptName(entry.name);
  });
  std::sort(entries->begin(), entries->end(), ByName);
  std::uint64_t files = entries->size() + 1;
  std::uint64_t bytes = size;
  for (const DirectoryEntry& entry : *entries) bytes += entry.size;
  for (const DirectoryEntry& entry : *entries) {
    if (files <= limits_.max_files && bytes <= limits_.max_bytes) return;
    if (!RemoveOwnFile(directory_.get(), entry.name)) continue;
    counters_->Add(SendCounter::kSpoolEvicted);
    --files;
    bytes -= entry.size;
  }
}

std::optional<Spool::Item> Spool::TakeOldest(OutputFormat format) {
  Result<std::vector<DirectoryEntry>> entries = ListOwnFiles(directory_.get());
  if (!entries) return std::nullopt;
  std::sort(entries->begin(), entries->end(), ByName);
  for (const DirectoryEntry& entry : *entries) {
    if (!IsSpoolName(entry.name) || !seen_.insert(entry.name).second) continue;
    Result<OwnFile> file =
        ReadOwnFile(directory_.get(), entry.name, limits_.max_bytes + kMaxHeadBytes);
    // Gone (another process was faster), or no descriptors, or no memory: not the file's fault.
    if (!file && file.error().code != EFBIG) continue;
    if (file && flock(file->fd.get(), LOCK_EX | LOCK_NB) != 0) {
      counters_->Add(SendCounter::kSpoolBusy);
      continue;
    }
    // Another process may have sent and removed it between the opening and the lock.
    struct stat status{};
    if (file && fstat(file->fd.get(), &status) == 0 && status.st_nlink == 0) continue;
    Result<Report> report =
        file ? ReadSpoolFile(file->bytes) : Result<Report>(tl::make_unexpected(file.error()));
    if (!report) {
      counters_->Add(SendCounter::kSpoolCorrupt);
      const std::string aside = entry.name + std::string(kCorruptSuffix);
      (void)renameat(directory_.get(), entry.name.c_str(), directory_.get(), aside.c_str());
      continue;
    }
    if (report->format != format) {
      counters_->Add(SendCounter::kSpoolOtherFormat);
      continue;
    }
    return Item{entry.name, *std::move(report), std::move(file->fd)};
  }
  return std::nullopt;
}

void Spool::Remove(Item& item) {
  RemoveOwnFile(directory_.get(), item.name);
  PutBack(item);
}

void Spool::PutBack(Item& item) {
  // A child that was forked meanwhile has a copy of the descriptor, which would keep the lock.
  if (item.lock.valid()) flock(item.lock.get(), LOCK_UN);
  item.lock = UniqueFd();
}

}  // namespace spanprof::sending
