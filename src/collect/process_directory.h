#pragma once

// /proc/PID of one process, held open: after the process has ended its files cannot be read any
// more, even when another process has got its number.
//
//   auto directory = ProcessDirectory::Open(4242);
//   auto maps = directory->ReadFile("maps", kMaxMapsBytes);
//   auto tasks = directory->ListTasks();
//
// What the files say is the target's to choose (a thread's name is any fifteen bytes), so names are
// bytes, not text, and every read has a limit. Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spanprof::collect {

struct Task {
  pid_t tid = 0;               // as the reader sees it
  uint32_t namespace_tid = 0;  // as the task itself sees it: what it publishes
  std::string name;            // comm, any bytes
};

struct FileText {
  std::string text;
  bool truncated = false;  // there was more than the limit
};

// The numbers of the NSpid line of a status file, outermost namespace first. Empty if there is none
// (kernels before 4.1) or it is malformed.
[[nodiscard]] std::vector<uint32_t> ParseNamespacePids(std::string_view status);

// The number on a line `name:` of a status file.
[[nodiscard]] std::optional<uint32_t> ParseStatusNumber(std::string_view status,
                                                        std::string_view name);

class ProcessDirectory {
 public:
  static constexpr std::size_t kMaxTasks = std::size_t{1} << 20;

  // Opens the directory of the process that `pid`, a process or one of its threads, belongs to.
  [[nodiscard]] static Result<ProcessDirectory> Open(pid_t pid);
  // Opens a directory that looks like one of /proc.
  [[nodiscard]] static Result<ProcessDirectory> OpenPath(const std::string& path, pid_t pid);

  [[nodiscard]] pid_t pid() const { return pid_; }
  // The process's number in its own pid namespace.
  [[nodiscard]] uint32_t namespace_pid() const { return namespace_pid_; }

  // Reads a file of the directory. The error's code is ESRCH when the process has ended.
  [[nodiscard]] Result<FileText> ReadFile(const std::string& name, std::size_t max_bytes) const;

  // The live tasks in the order of their numbers. A task that ends meanwhile is left out.
  [[nodiscard]] Result<std::vector<Task>> ListTasks() const;

 private:
  ProcessDirectory(UniqueFd directory, std::string path, pid_t pid)
      : directory_(std::move(directory)), path_(std::move(path)), pid_(pid) {}

  UniqueFd directory_;
  std::string path_;
  pid_t pid_;
  uint32_t namespace_pid_ = 0;
  // The process shares the reader's pid namespace: tasks need no translation.
  bool same_namespace_ = true;
};

}  // namespace spanprof::collect
