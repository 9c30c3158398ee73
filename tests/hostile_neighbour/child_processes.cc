// Children of every kind. One that a signal killed, or that ended with another code than it was
// told to, is a failure.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <spawn.h>
#include <string>
#include <unistd.h>

#include <sys/wait.h>

#include "scenario.h"

namespace spanprof::hostile {
namespace {

void ExpectExit(pid_t child, int code, const char* what) {
  Expect(child > 0, what, -errno, 1);
  if (child <= 0) return;
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  ExpectEqual(ended, child, what);
  Expect(WIFEXITED(status), what, WTERMSIG(status), 0);
  ExpectEqual(WEXITSTATUS(status), code, what);
}

void Forks() {
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(RunAsChild(i));
    ExpectExit(child, i, "a forked child");
  }
}

void ForksAndExecs() {
  const char* path = OwnPath().c_str();
  for (int i = 0; i < 6; ++i) {
    const std::string number = std::to_string(i);
    pid_t child = fork();
    if (child == 0) {
      if (i % 2 == 0) Burn(3000);  // a recording of the child has begun, or is about to
      execl("/nonexistent/program", "program", nullptr);
      execl(path, "hostile_neighbour", "--child", number.c_str(), nullptr);
      _exit(100);
    }
    ExpectExit(child, i, "a child by fork and exec");
    child = vfork();
    if (child == 0) {
      execl("/nonexistent/program", "program", nullptr);
      execl(path, "hostile_neighbour", "--child", number.c_str(), nullptr);
      _exit(100);
    }
    ExpectExit(child, i, "a child by vfork and exec");
  }
}

void Spawns() {
  for (int i = 0; i < 6; ++i) {
    std::string words[] = {"hostile_neighbour", "--child", std::to_string(i)};
    char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    pid_t child = 0;
    ExpectEqual(posix_spawn(&child, OwnPath().c_str(), nullptr, nullptr, argv, environ), 0,
                "posix_spawn");
    ExpectExit(child, i, "a spawned child");
  }
}

void RunsShells() {
  const std::lock_guard lock(keyboard_signals);
  const int status = system("exit 7");
  Expect(WIFEXITED(status) && WEXITSTATUS(status) == 7, "system(\"exit 7\")", status, 7 << 8);
  FILE* output = popen("echo one; echo two", "r");
  Expect(output != nullptr, "popen", -errno, 0);
  if (output == nullptr) return;
  char text[64] = {};
  const size_t got = fread(text, 1, sizeof text - 1, output);
  const int closed = pclose(output);
  Expect(std::string(text, got) == "one\ntwo\n", "what a shell wrote", static_cast<int64_t>(got),
         8);
  ExpectEqual(closed, 0, "the shell's end");
}

}  // namespace

const Scenario kChildren[] = {
    {"forks", Forks},   {"forks and execs", ForksAndExecs},
    {"spawns", Spawns}, {"runs shells", RunsShells},
    {nullptr, nullptr},
};

}  // namespace spanprof::hostile
