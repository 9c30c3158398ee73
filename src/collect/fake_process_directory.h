#pragma once

// A directory that looks like /proc/PID, for tests. Removed with its owner.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/types.h>

#include "collect/process_directory.h"

namespace spanprof::collect {

class FakeProcessDirectory {
 public:
  explicit FakeProcessDirectory(pid_t pid, const std::string& namespace_pids = {}) : pid_(pid) {
    std::string pattern = std::filesystem::temp_directory_path() / "spanprof-test-XXXXXX";
    path_ = mkdtemp(pattern.data());
    Write("status", Status(namespace_pids.empty() ? std::to_string(pid) : namespace_pids));
    std::filesystem::create_directory(path_ / "task");
  }
  FakeProcessDirectory(const FakeProcessDirectory&) = delete;
  FakeProcessDirectory& operator=(const FakeProcessDirectory&) = delete;
  ~FakeProcessDirectory() { std::filesystem::remove_all(path_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  // Without `namespace_pids` its status has no such line.
  void AddTask(pid_t tid, const std::string& name, const std::string& namespace_pids = {}) {
    const std::string task = "task/" + std::to_string(tid);
    std::filesystem::create_directory(path_ / task);
    Write(task + "/comm", name + "\n");
    Write(task + "/status", Status(namespace_pids));
  }
  [[nodiscard]] Result<ProcessDirectory> Open() const {
    return ProcessDirectory::OpenPath(path_.string(), pid_);
  }

 private:
  static std::string Status(const std::string& namespace_pids) {
    return "Name:\tfake\n" + (namespace_pids.empty() ? "" : "NSpid:\t" + namespace_pids + "\n");
  }

  std::filesystem::path path_;
  pid_t pid_;
};

}  // namespace spanprof::collect
