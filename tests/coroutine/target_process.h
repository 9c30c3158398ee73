#pragma once

// For tests with several processes: children that die with their parent, memory that they share
// with it, and a folder for recordings.

#include <functional>
#include <new>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/types.h>

namespace spanprof::coroutine {

// Runs `body` in a forked child, with these variables in its environment. Its exit status is what
// `body` returns.
class TargetProcess {
 public:
  TargetProcess(const std::vector<std::string>& environment, const std::function<int()>& body);
  ~TargetProcess();  // kills it if it still runs
  TargetProcess(const TargetProcess&) = delete;
  TargetProcess& operator=(const TargetProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  // -1: it was ended by a signal.
  int Wait();
  [[nodiscard]] bool HasEnded();
  void Kill();

 private:
  pid_t pid_;
  bool ended_ = false;
  int status_ = 0;
};

template <class T>
class SharedWithChildren {
 public:
  SharedWithChildren()
      : value_(new(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                        0)) T()) {}
  ~SharedWithChildren() { munmap(value_, sizeof(T)); }
  SharedWithChildren(const SharedWithChildren&) = delete;
  SharedWithChildren& operator=(const SharedWithChildren&) = delete;
  T* operator->() const { return value_; }

 private:
  T* value_;
};

class RecordingFolder {
 public:
  RecordingFolder();
  ~RecordingFolder();
  RecordingFolder(const RecordingFolder&) = delete;
  RecordingFolder& operator=(const RecordingFolder&) = delete;
  [[nodiscard]] std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace spanprof::coroutine
