#include "export/directory_files.h"

#include <atomic>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <stdio.h>
#include <system_error>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/printable_text.h"

namespace spanprof::sending {
namespace {

constexpr std::string_view kTemporaryPrefix = ".spanprof-";
constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr std::int64_t kStaleNs = std::int64_t{3600} * 1'000'000'000;

std::string TemporaryName() {
  static std::atomic<std::uint64_t> counter{0};
  std::string name(kTemporaryPrefix);
  name += std::to_string(getpid()) + "-" +
          std::to_string(counter.fetch_add(1, std::memory_order_relaxed));
  return name.append(kTemporarySuffix);
}

std::string HintFor(int error_number) {
  switch (error_number) {
    case ENOENT:
      return "create the directory first";
    case ENOSPC:
    case EDQUOT:
      return "free space on that file system, or name another directory";
    case EROFS:
    case EACCES:
    case EPERM:
      return "name a directory that this user may write to";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f)";
    case ELOOP:
      return "give the path that the link leads to: links are not followed there";
    case ENAMETOOLONG:
      return "give a shorter name";
    case EMFILE:
    case ENFILE:
      return "raise the limit on open files (ulimit -n)";
    default:
      return "";
  }
}

bool IsOwnFile(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == geteuid();
}

bool StatNoFollow(int directory, const std::string& name, struct stat& status) {
  return fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

// A write past the limit raises SIGXFSZ, which kills: so it is never made.
bool ExceedsFileLimit(std::uint64_t size) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
  return limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// Returns 0 or errno.
int Rename(int directory, const std::string& from, const std::string& to, IfPresent if_present) {
  if (if_present == IfPresent::kFail) {
    constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE
    if (syscall(SYS_renameat2, directory, from.c_str(), directory, to.c_str(), kNoReplace) == 0) {
      return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) return errno;
    // The file system or the kernel cannot: look first, and leave a gap that is short.
  }
  struct stat status{};
  if (StatNoFollow(directory, to, status)) {
    if (if_present == IfPresent::kFail) return EEXIST;
    if (S_ISLNK(status.st_mode)) return ELOOP;
    if (!S_ISREG(status.st_mode)) return EINVAL;
  }
  return renameat(directory, from.c_str(), directory, to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

Error FileError(int error_number, const std::string& what) {
  return {error_number, what + ": " + std::generic_category().message(error_number),
          HintFor(error_number)};
}

Result<UniqueFd> OpenDirectory(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    return tl::make_unexpected(FileError(errno, "cannot open the directory " + Quoted(path)));
  }
  return fd;
}

Result<void> WriteFileWhole(int directory, const std::string& name, std::string_view bytes,
                            IfPresent if_present) {
  const std::string what =
      "cannot write " + std::to_string(bytes.size()) + " bytes to " + Quoted(name);
  if (ExceedsFileLimit(bytes.size())) return tl::make_unexpected(FileError(EFBIG, what));
  const std::string temporary = TemporaryName();
  UniqueFd fd(openat(directory, temporary.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return tl::make_unexpected(FileError(errno, what));
  int failed = WriteAll(fd.get(), bytes);
  // NFS and quotas report a full disk only here.
  if (close(fd.Release()) != 0 && failed == 0 && errno != EINTR) failed = errno;
  if (failed == 0) failed = Rename(directory, temporary, name, if_present);
  if (failed == 0) return {};
  unlinkat(directory, temporary.c_str(), 0);
  if (failed == EINVAL) {
    return Fail(EINVAL, what + ": something that is not a plain file has that name",
                "give the name of a file");
  }
  return tl::make_unexpected(FileError(failed, what));
}

Result<std::vector<DirectoryEntry>> ListOwnFiles(int directory) {
  const int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return tl::make_unexpected(FileError(errno, "cannot list the directory"));
  DIR* const opened = fdopendir(copy);
  if (opened == nullptr) {
    const int error_number = errno;
    close(copy);
    return tl::make_unexpected(FileError(error_number, "cannot list the directory"));
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opened, closedir);
  std::vector<DirectoryEntry> entries;
  while (const dirent* const entry = readdir(stream.get())) {
    struct stat status{};
    std::string name = entry->d_name;
    if (!StatNoFollow(directory, name, status) || !IsOwnFile(status)) continue;
    entries.push_back({.name = std::move(name),
                       .modified_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 +
                                      status.st_mtim.tv_nsec,
                       .size = static_cast<std::uint64_t>(status.st_size)});
  }
  return entries;
}

bool RemoveOwnFile(int directory, const std::string& name) {
  struct stat status{};
  if (!StatNoFollow(directory, name, status) || !IsOwnFile(status)) return false;
  return unlinkat(directory, name.c_str(), 0) == 0;
}

void RemoveStaleTemporaryFiles(int directory, const std::vector<DirectoryEntry>& entries,
                               std::int64_t now_ns) {
  for (const DirectoryEntry& entry : entries) {
    if (entry.name.starts_with(kTemporaryPrefix) && entry.name.ends_with(kTemporarySuffix) &&
        entry.modified_ns < now_ns - kStaleNs) {
      RemoveOwnFile(directory, entry.name);
    }
  }
}

Result<OwnFile> ReadOwnFile(int directory, const std::string& name, std::uint64_t max_size) {
  const std::string what = "cannot read " + Quoted(name);
  // O_NONBLOCK: a pipe in the place of a file must not hold us up.
  OwnFile file{.fd = UniqueFd(
                   openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)),
               .bytes = {}};
  if (!file.fd.valid()) return tl::make_unexpected(FileError(errno, what));
  struct stat status{};
  if (fstat(file.fd.get(), &status) != 0) return tl::make_unexpected(FileError(errno, what));
  if (!IsOwnFile(status)) return Fail(EPERM, what + ": not a plain file of this user");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > max_size) {
    return Fail(EFBIG, what + ": " + std::to_string(size) + " bytes are more than " +
                           std::to_string(max_size));
  }
  file.bytes.resize(size);
  std::size_t filled = 0;
  while (filled < file.bytes.size()) {
    const ssize_t got = read(file.fd.get(), file.bytes.data() + filled, file.bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::make_unexpected(FileError(errno, what));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  file.bytes.resize(filled);
  return file;
}

}  // namespace spanprof::sending
