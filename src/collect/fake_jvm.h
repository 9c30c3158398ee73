#pragma once

// For tests of the attach protocol: a process that looks like a JVM from outside and does what a
// real one never would.

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <signal.h>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/unique_fd.h"

namespace spanprof::collect {

inline std::string JavaSocket(pid_t pid) { return "/tmp/.java_pid" + std::to_string(pid); }

// A socket that listens at `path`.
inline UniqueFd ListenAt(const std::string& path) {
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  unlink(path.c_str());
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), 5) != 0) {
    std::abort();
  }
  return listener;
}

class FakeJvm {
 public:
  struct Behaviour {
    bool catches_quit = true;
    bool listens = true;  // once it finds the attach file at a SIGQUIT
    // Is given the connection with the request behind it, and the request.
    std::function<void(int, const std::string&)> answer = [](int connection, const std::string&) {
      Say(connection, "0\nreturn code: 0\n");
    };
  };

  explicit FakeJvm(const Behaviour& behaviour) {
    std::string pattern = testing::TempDir() + "fake-jvm-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    int ready[2];
    if (pipe(ready) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Run(behaviour, ready[1]);
    }
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1) << "the fake JVM died";
    close(ready[0]);
  }
  FakeJvm(const FakeJvm&) = delete;
  FakeJvm& operator=(const FakeJvm&) = delete;
  ~FakeJvm() {
    Kill();
    std::filesystem::remove_all(folder_);
  }

  static void Say(int connection, const std::string& text) {
    (void)!send(connection, text.data(), text.size(), MSG_NOSIGNAL);
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string attach_file() const {
    return folder_ + "/.attach_pid" + std::to_string(pid_);
  }
  [[nodiscard]] bool IsAlive() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }
  void Kill() {
    if (pid_ <= 0) return;
    unlink(JavaSocket(pid_).c_str());
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  static inline int quit_pipe_[2];

  [[noreturn]] void Run(const Behaviour& behaviour, int ready) {
    if (chdir(folder_.c_str()) != 0) _exit(1);
    const UniqueFd library(open("libjvm.so", O_RDWR | O_CREAT, 0600));
    if (ftruncate(library.get(), 4096) != 0) _exit(1);
    mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, library.get(), 0);
    if (pipe(quit_pipe_) != 0) _exit(1);
    if (behaviour.catches_quit) {
      struct sigaction action = {};
      action.sa_handler = [](int) { (void)!write(quit_pipe_[1], "q", 1); };
      action.sa_flags = SA_RESTART;
      sigaction(SIGQUIT, &action, nullptr);
    }
    (void)!write(ready, "r", 1);
    char byte = 0;
    while (read(quit_pipe_[0], &byte, 1) == 1) {
      const std::string file = ".attach_pid" + std::to_string(getpid());
      struct stat status = {};
      if (!behaviour.listens || stat(file.c_str(), &status) != 0) continue;
      const UniqueFd listener = ListenAt(JavaSocket(getpid()));
      for (;;) {
        const UniqueFd connection(accept(listener.get(), nullptr, nullptr));
        std::string request;
        for (int parts = 0; parts < 5 && read(connection.get(), &byte, 1) == 1;) {
          request += byte;
          if (byte == '\0') ++parts;
        }
        behaviour.answer(connection.get(), request);
      }
    }
    _exit(0);
  }

  std::string folder_;
  pid_t pid_ = 0;
};

}  // namespace spanprof::collect
