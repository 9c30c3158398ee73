#include "collect/target_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

namespace spanprof::collect {
namespace {

// Where every system has a folder for everybody. /tmp is often mounted noexec, the others less.
constexpr const char* kPlaces[] = {"tmp", "var/tmp", "dev/shm"};

// Kernels before 5.6, and seccomp filters that are older than the call: follows no link at all.
UniqueFd OpenWithoutLinks(int root, const std::string& path, int flags) {
  UniqueFd folder(openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string_view rest = path;
  while (folder.valid()) {
    rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
    const std::string part(rest.substr(0, rest.find('/')));
    rest.remove_prefix(part.size());
    if (part == "..") {
      errno = EXDEV;
      return {};
    }
    if (rest.find_first_not_of('/') == std::string_view::npos) {
      return UniqueFd(openat(folder.get(), part.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
    }
    folder =
        UniqueFd(openat(folder.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  return {};
}

Result<std::string> UnforeseeableName(std::uint32_t pid) {
  std::uint64_t words[2];
  if (getrandom(words, sizeof words, 0) != static_cast<ssize_t>(sizeof words)) {
    return Fail(errno, std::string("the kernel gives no random numbers: ") + std::strerror(errno));
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name = "spanprof-" + std::to_string(pid) + "-";
  for (std::uint64_t word : words) {
    for (int digit = 0; digit < 16; ++digit, word >>= 4) name += kDigits[word & 15];
  }
  return name;
}

// Nobody else can rename or replace what the owner puts into it.
bool KeepsWhatIsPutIn(const struct stat& place, uid_t owner) {
  if (place.st_uid != 0 && place.st_uid != owner) return false;
  return (place.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (place.st_mode & S_ISVTX) != 0;
}

}  // namespace

UniqueFd OpenBeneathRoot(int root, const std::string& path, int flags) {
  open_how how = {};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const long fd = syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
  if (fd < 0 && (errno == ENOSYS || errno == EPERM)) return OpenWithoutLinks(root, path, flags);
  return UniqueFd(static_cast<int>(fd));
}

Result<TargetFolder> TargetFolder::Create(int root, std::uint32_t pid, uid_t owner, Use use) {
  const Result<std::string> name = UnforeseeableName(pid);
  if (!name) return tl::make_unexpected(name.error());
  std::string problems;
  int code = ENOENT;
  for (const char* place : kPlaces) {
    const auto skip = [&](const std::string& reason) {
      problems += (problems.empty() ? "/" : ", /") + std::string(place) + ": " + reason;
    };
    UniqueFd parent = OpenBeneathRoot(root, place, O_PATH | O_DIRECTORY);
    struct stat status = {};
    struct statvfs mount = {};
    if (!parent.valid() || fstat(parent.get(), &status) != 0 ||
        fstatvfs(parent.get(), &mount) != 0) {
      code = errno;
      skip(std::strerror(code));
      continue;
    }
    if (!KeepsWhatIsPutIn(status, owner)) {
      skip("others can replace files in it");
      continue;
    }
    if (use == Use::kCode && (mount.f_flag & ST_NOEXEC) != 0) {
      skip("mounted noexec");
      continue;
    }
    if (mkdirat(parent.get(), name->c_str(), 0700) != 0) {
      code = errno;
      skip(std::strerror(code));
      continue;
    }
    UniqueFd folder(
        openat(parent.get(), name->c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const bool is_ours = folder.valid() && fstat(folder.get(), &status) == 0 &&
                         status.st_uid == owner && (status.st_mode & 077) == 0;
    std::string path = "/" + std::string(place) + "/" + *name;
    TargetFolder made(std::move(parent), std::move(folder), *name, std::move(path));
    if (is_ours) return made;
    skip("a new folder in it has other rights than asked for");
  }
  return Fail(code, "there is no folder for the target's files: " + problems,
              use == Use::kCode
                  ? "put libspanprof-jvm.so where the JVM sees it too, and start the JVM with "
                    "-agentpath:PATH"
                  : "make its /tmp writable, with the sticky bit: chmod 1777 /tmp");
}

TargetFolder::TargetFolder(TargetFolder&& other) noexcept
    : parent_(std::move(other.parent_)),
      folder_(std::move(other.folder_)),
      name_(std::move(other.name_)),
      path_(std::move(other.path_)),
      files_(std::move(other.files_)),
      kept_(std::exchange(other.kept_, true)) {}

TargetFolder::~TargetFolder() {
  if (kept_) return;
  for (const std::string& file : files_) unlinkat(folder_.get(), file.c_str(), 0);
  unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR);
}

Result<UniqueFd> TargetFolder::CreateFile(const std::string& name, mode_t mode) {
  UniqueFd file(openat(folder_.get(), name.c_str(),
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.valid() || fchmod(file.get(), mode) != 0) {
    const int code = errno;
    return Fail(code, "cannot make " + PathOf(name) + " for the target: " + std::strerror(code));
  }
  files_.push_back(name);
  return file;
}

}  // namespace spanprof::collect
