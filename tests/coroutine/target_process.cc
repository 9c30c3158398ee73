#include "tests/coroutine/target_process.h"

#include <cstdlib>
#include <filesystem>
#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace spanprof::coroutine {

TargetProcess::TargetProcess(const std::vector<std::string>& environment,
                             const std::function<int()>& body) {
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const std::string& variable : environment) {
    const std::size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  _exit(body());
}

TargetProcess::~TargetProcess() { Kill(); }

bool TargetProcess::HasEnded() {
  if (!ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
  return ended_;
}

int TargetProcess::Wait() {
  if (!ended_) waitpid(pid_, &status_, 0);
  ended_ = true;
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
}

void TargetProcess::Kill() {
  if (HasEnded()) return;
  kill(pid_, SIGKILL);
  (void)Wait();
}

RecordingFolder::RecordingFolder() {
  path_ = testing::TempDir() + "/coroutines-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) std::abort();
}

RecordingFolder::~RecordingFolder() { std::filesystem::remove_all(path_); }

}  // namespace spanprof::coroutine
