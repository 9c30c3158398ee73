#include "cli/installed_library.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace spanprof::cli {

Result<std::string> FindInstalledLibrary(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Fail(error.value(), "/proc/self/exe cannot be read: " + error.message());
  std::string tried;
  for (const char* place : {"../lib", "../lib/spanprof", "."}) {
    const std::filesystem::path path = self.parent_path() / place / name;
    const std::filesystem::path found = std::filesystem::canonical(path, error);
    if (!error) return found.string();
    tried += (tried.empty() ? "" : ", ") + path.string();
  }
  return Fail(ENOENT, name + " is not installed; looked for " + tried,
              "install it beside the command, or build it: ./dev build");
}

}  // namespace spanprof::cli
