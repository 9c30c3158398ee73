#pragma once

// For tests with real JVMs: the JDKs of this machine, and a Java program that runs in one of them.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <set>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/unique_fd.h"

namespace spanprof::cli {

struct Jdk {
  std::string home;
  std::string version;  // "17"
};

inline void PrintTo(const Jdk& jdk, std::ostream* out) { *out << jdk.version; }

// Those that can compile and have the tool `jfr`, one of each version.
inline std::vector<Jdk> FindJdks() {
  std::vector<std::filesystem::path> homes;
  if (const char* home = std::getenv("JAVA_HOME")) homes.emplace_back(home);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/jvm", error)) {
    homes.push_back(entry.path());
  }
  std::vector<Jdk> jdks;
  std::set<std::string> versions;
  for (const std::filesystem::path& home : homes) {
    if (access((home / "bin/javac").c_str(), X_OK) != 0) continue;
    if (access((home / "bin/jfr").c_str(), X_OK) != 0) continue;
    std::ifstream release(home / "release");
    for (std::string line; std::getline(release, line);) {
      constexpr std::string_view kKey = "JAVA_VERSION=\"";
      if (!line.starts_with(kKey)) continue;
      const std::string version =
          line.substr(kKey.size(), line.find_first_of(".\"", kKey.size()) - kKey.size());
      if (versions.insert(version).second) jdks.push_back({home.string(), version});
    }
  }
  std::sort(jdks.begin(), jdks.end(),
            [](const Jdk& left, const Jdk& right) { return left.version < right.version; });
  return jdks;
}

// Uses CPU time until it is killed. Prints a line when it runs.
inline constexpr const char* kBusyJava = R"(
public class Busy {
  static volatile long sink;
  static void work() { for (int i = 0; i < 100000; i++) sink += i; }
  public static void main(String[] arguments) throws Exception {
    System.out.println("ready");
    for (;;) { work(); Thread.sleep(1); }
  }
})";

// A program that was started with pipes on its standard output; killed at the end with what it
// started in a pid namespace of its own.
class JavaProcess {
 public:
  // Waits until it says that it is ready.
  explicit JavaProcess(std::vector<std::string> command, uid_t uid = 0) {
    int output[2];
    if (pipe(output) != 0) std::abort();
    child_ = fork();
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (uid != 0 && (setgid(uid) != 0 || setuid(uid) != 0)) _exit(126);
      dup2(output[1], STDOUT_FILENO);
      std::vector<char*> argv;
      for (std::string& word : command) argv.push_back(word.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(output[1]);
    output_ = UniqueFd(output[0]);
    pid_ = child_;
    is_ready_ = ReadLine() == "ready";
  }
  JavaProcess(const JavaProcess&) = delete;
  JavaProcess& operator=(const JavaProcess&) = delete;
  ~JavaProcess() { Kill(); }

  [[nodiscard]] bool is_ready() const { return is_ready_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string pid_text() const { return std::to_string(pid_); }
  // The one process that the command started is the JVM.
  void UseOnlyChild() {
    std::ifstream children("/proc/" + std::to_string(child_) + "/task/" + std::to_string(child_) +
                           "/children");
    children >> pid_;
  }
  // Returns when all its threads have stopped. The one that takes the signal stops the others, and
  // on a busy machine it may have to wait for its turn.
  void Stop() const {
    kill(child_, SIGSTOP);
    waitpid(child_, nullptr, WUNTRACED);
  }
  [[nodiscard]] bool IsAlive() const { return waitpid(child_, nullptr, WNOHANG) == 0; }
  void Kill() {
    if (child_ <= 0) return;
    if (pid_ != child_) kill(pid_, SIGKILL);
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    // A killed JVM leaves it.
    unlink(("/tmp/.java_pid" + pid_text()).c_str());
    child_ = 0;
  }

 private:
  std::string ReadLine() {
    std::string line;
    char byte = 0;
    while (read(output_.get(), &byte, 1) == 1 && byte != '\n') line += byte;
    return line;
  }

  pid_t child_ = 0;
  pid_t pid_ = 0;
  bool is_ready_ = false;
  UniqueFd output_;
};

}  // namespace spanprof::cli
