#pragma once

// Processes that a stress test starts, watches and never waits for without end.

#include <functional>
#include <new>
#include <string>
#include <utility>

#include <sys/mman.h>
#include <sys/types.h>

namespace spanprof::stress {

// Runs `body` in a forked child that ends with it, with what it returned as its exit status, and
// dies with its parent. The parent must have one thread only if the child is to start threads.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int()>& body);
  ~ChildProcess();  // kills it if it still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // The exit status; -1 and the reason in `problem()` if it was ended by a signal, or did not end
  // within the limit (then it is killed).
  int Wait(double limit_seconds = 60);
  void Kill();
  const std::string& problem() const { return problem_; }

 private:
  pid_t pid_;
  bool ended_ = false;
  std::string problem_;
};

// The same for a child that somebody else forked.
int WaitForChild(pid_t pid, double limit_seconds, std::string* problem);

// A T in memory that forked children share.
template <class T>
class Shared {
 public:
  Shared() {
    void* memory =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    value_ = new (memory) T();
  }
  ~Shared() { munmap(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  T* operator->() const { return value_; }
  T& operator*() const { return *value_; }

 private:
  T* value_;
};

}  // namespace spanprof::stress
