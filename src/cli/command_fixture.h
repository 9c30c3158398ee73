#pragma once

// For tests of the command: child processes to look at, and the built command run on them.

#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <poll.h>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/unique_fd.h"

namespace spanprof::cli {

// A child that runs `body` and then waits to be killed. The constructor returns when `body` has.
class Target {
 public:
  explicit Target(const std::function<void()>& body) {
    int ready[2];
    if (pipe(ready) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      body();
      if (write(ready[1], "x", 1) != 1) _exit(1);
      for (;;) pause();
    }
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1) << "the target died";
    close(ready[0]);
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  ~Target() { Kill(); }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string pid_text() const { return std::to_string(pid_); }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

// The command, running (or another program). Its output is to be small: it is read when asked for.
class Command {
 public:
  explicit Command(std::vector<std::string> arguments, uid_t uid = 0,
                   const char* path = SPANPROF_COMMAND_PATH) {
    // Opened before the change of user, who may not be able to walk to it.
    const UniqueFd program(open(path, O_RDONLY | O_CLOEXEC));
    int output[2];
    int errors[2];
    if (!program.valid() || pipe(output) != 0 || pipe(errors) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(output[1], STDOUT_FILENO);
      dup2(errors[1], STDERR_FILENO);
      close(output[0]);
      close(errors[0]);
      if (uid != 0 && (setgid(uid) != 0 || setuid(uid) != 0)) _exit(126);
      arguments.insert(arguments.begin(), "spanprof");
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      fexecve(program.get(), argv.data(), environ);
      _exit(127);
    }
    close(output[1]);
    close(errors[1]);
    out_ = UniqueFd(output[0]);
    err_ = UniqueFd(errors[0]);
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  // The next line of the output, without its newline.
  std::string ReadLine() {
    std::string line;
    char byte = 0;
    while (read(out_.get(), &byte, 1) == 1 && byte != '\n') line += byte;
    return line;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void Signal(int number) const { kill(pid_, number); }
  // Waits for the end. -1: it was killed by a signal.
  int Wait() {
    out += ReadAll(out_.get());
    err += ReadAll(err_.get());
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string out;  // after Wait
  std::string err;

 private:
  static std::string ReadAll(int fd) {
    std::string text;
    char buffer[4096];
    for (;;) {
      const ssize_t got = read(fd, buffer, sizeof(buffer));
      if (got <= 0) return text;
      text.append(buffer, static_cast<std::size_t>(got));
    }
  }

  pid_t pid_ = 0;
  UniqueFd out_;
  UniqueFd err_;
};

}  // namespace spanprof::cli
