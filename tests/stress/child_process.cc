#include "child_process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/wait.h>

#include "stress_run.h"

namespace spanprof::stress {

ChildProcess::ChildProcess(const std::function<int()>& body) {
  fflush(stdout);
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int status = body();
  fflush(stdout);
  _exit(status);
}

ChildProcess::~ChildProcess() {
  if (!ended_) Kill();
}

int ChildProcess::Wait(double limit_seconds) {
  ended_ = true;
  return WaitForChild(pid_, limit_seconds, &problem_);
}

void ChildProcess::Kill() {
  ended_ = true;
  // Only as long as it is ours: once waited for, its pid may be anybody's.
  siginfo_t info = {};
  if (pid_ <= 0 ||
      waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return;
  }
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

int WaitForChild(pid_t pid, double limit_seconds, std::string* problem) {
  if (pid <= 0) {
    *problem = "was not started";
    return -1;
  }
  const double end = MonotonicSeconds() + limit_seconds;
  for (unsigned pause = 0;;) {
    int status = 0;
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) {
      *problem = "waitpid failed with errno " + std::to_string(errno);
      return -1;
    }
    if (ended == pid && WIFEXITED(status)) return WEXITSTATUS(status);
    if (ended == pid) {
      *problem = "was ended by signal " + std::to_string(WTERMSIG(status));
      return -1;
    }
    if (MonotonicSeconds() > end) {
      *problem = "hung and was killed";
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
      return -1;
    }
    usleep(pause);
    if (pause < 2000) pause += 100;
  }
}

}  // namespace spanprof::stress
