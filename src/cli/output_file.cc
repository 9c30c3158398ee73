#include "cli/output_file.h"

#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <sys/stat.h>

#include "base/printable_text.h"
#include "base/unique_fd.h"
#include "export/directory_files.h"

namespace spanprof::cli {
namespace {

Result<void> WriteStandardOutput(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error_number = errno;
      return Fail(error_number, "cannot write to the standard output: " +
                                    std::generic_category().message(error_number));
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

struct FolderAndName {
  UniqueFd folder;
  std::string name;
};

Result<FolderAndName> OpenFolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") {
    return Fail(EISDIR, Quoted(path) + " is a folder", "give the name of a file");
  }
  Result<UniqueFd> directory = sending::OpenDirectory(folder);
  if (!directory) return tl::make_unexpected(directory.error());
  return FolderAndName{std::move(*directory), name};
}

}  // namespace

Result<void> CheckOutputFolder(const std::string& path) {
  if (path == "-") return {};
  const Result<FolderAndName> place = OpenFolderOf(path);
  if (!place) return tl::make_unexpected(place.error());
  struct stat status = {};
  if (fstatat(place->folder.get(), place->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISDIR(status.st_mode)) {
    return Fail(EISDIR, Quoted(path) + " is a folder", "give the name of a file");
  }
  if (faccessat(place->folder.get(), ".", W_OK, AT_EACCESS) != 0) {
    const int error_number = errno;
    return Fail(
        error_number,
        "cannot write " + Quoted(path) + ": " + std::generic_category().message(error_number),
        "give a folder that you can write to: -o /tmp/" + place->name);
  }
  return {};
}

Result<void> WriteOutput(const std::string& path, std::string_view bytes) {
  if (path == "-") return WriteStandardOutput(bytes);
  const Result<FolderAndName> place = OpenFolderOf(path);
  if (!place) return tl::make_unexpected(place.error());
  return sending::WriteFileWhole(place->folder.get(), place->name, bytes,
                                 sending::IfPresent::kReplace);
}

}  // namespace spanprof::cli
