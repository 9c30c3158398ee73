// The ways in which a process ends without its exit handlers: _exit and exec. What was recorded is
// written first. A child between vfork and exec has its parent's memory, and is told by its pid.

#include <alloca.h>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "context/core_election.h"
#include "preload/real_function.h"

namespace spanprof::preload {
namespace {

constinit RealFunction<int(const char*, char* const*, char* const*)> real_execve{"execve"};
constinit RealFunction<int(int, char* const*, char* const*)> real_fexecve{"fexecve"};
constinit RealFunction<void(int)> real_exit{"_exit"};

void Finish() {
  if (const context::CoreInterface* core = context::ActiveCore())
    core->profiler().finish_before_exit();
}

// exec returns only when it fails; errno is its.
int AfterFailedExec(int result) {
  const int error = errno;
  if (const context::CoreInterface* core = context::ActiveCore()) core->profiler().resume();
  errno = error;
  return result;
}

int Execve(const char* path, char* const argv[], char* const envp[]) {
  // A path that cannot be executed is often one of several to try.
  if (access(path, X_OK) != 0) return real_execve(path, argv, envp);
  Finish();
  return AfterFailedExec(real_execve(path, argv, envp));
}

// As execvp finds it: each folder of PATH, and a shell for what is no program.
int ExecveOnPath(const char* file, char* const argv[], char* const envp[]) {
  if (*file == '\0' || strchr(file, '/') != nullptr) {
    Execve(file, argv, envp);
  } else {
    const char* path = getenv("PATH");
    if (path == nullptr) path = "/bin:/usr/bin";
    const size_t file_length = strlen(file);
    bool denied = false;
    for (const char* part = path;; ++part) {
      const char* end = strchrnul(part, ':');
      const auto length = static_cast<size_t>(end - part);
      char candidate[4096];
      if (length + file_length + 2 <= sizeof candidate) {
        memcpy(candidate, part, length);
        size_t used = length;
        if (length != 0) candidate[used++] = '/';
        memcpy(candidate + used, file, file_length + 1);
        Execve(candidate, argv, envp);
        if (errno == ENOEXEC) {
          file = strdupa(candidate);
          break;
        }
        if (errno == EACCES) denied = true;
        if (errno != ENOENT && errno != EACCES && errno != ENOTDIR && errno != ESTALE) return -1;
      }
      if (*end == '\0') {
        if (denied) errno = EACCES;
        return -1;
      }
      part = end;
    }
  }
  if (errno != ENOEXEC) return -1;
  size_t count = 0;
  while (argv[count] != nullptr) ++count;
  auto** shell = static_cast<char**>(alloca((count + 3) * sizeof(char*)));
  shell[0] = const_cast<char*>("/bin/sh");
  shell[1] = const_cast<char*>(file);
  for (size_t i = 1; i <= count; ++i) shell[i + 1] = argv[i];
  if (count == 0) shell[2] = nullptr;
  return Execve("/bin/sh", shell, envp);
}

[[gnu::constructor]] void OnLoad() {
  real_execve.Find();
  real_fexecve.Find();
  real_exit.Find();
  at_quick_exit(Finish);
}

// The arguments of execl and its like as an array, which exec may need where nothing can be
// allocated: on the stack of who calls.
size_t BytesOfArguments(const char* first, va_list list) {
  va_list copy;
  va_copy(copy, list);
  size_t count = 1;
  for (const char* each = first; each != nullptr; each = va_arg(copy, const char*)) ++count;
  va_end(copy);
  return count * sizeof(char*);
}

void TakeArguments(const char* first, va_list list, char** argv) {
  for (const char* each = first; each != nullptr; each = va_arg(list, const char*)) {
    *argv++ = const_cast<char*>(each);
  }
  *argv = nullptr;
}

}  // namespace
}  // namespace spanprof::preload

extern "C" {

using spanprof::preload::BytesOfArguments;
using spanprof::preload::Execve;
using spanprof::preload::ExecveOnPath;
using spanprof::preload::TakeArguments;

[[gnu::visibility("default"), gnu::noreturn]] void _exit(int status) {
  spanprof::preload::Finish();
  spanprof::preload::real_exit(status);
  __builtin_unreachable();
}
[[gnu::visibility("default"), gnu::noreturn]] void _Exit(int status) noexcept { _exit(status); }

[[gnu::visibility("default")]] int execve(const char* path, char* const argv[],
                                          char* const envp[]) noexcept {
  return Execve(path, argv, envp);
}
[[gnu::visibility("default")]] int execv(const char* path, char* const argv[]) noexcept {
  return Execve(path, argv, environ);
}
[[gnu::visibility("default")]] int execvp(const char* file, char* const argv[]) noexcept {
  return ExecveOnPath(file, argv, environ);
}
[[gnu::visibility("default")]] int execvpe(const char* file, char* const argv[],
                                           char* const envp[]) noexcept {
  return ExecveOnPath(file, argv, envp);
}
[[gnu::visibility("default")]] int fexecve(int fd, char* const argv[],
                                           char* const envp[]) noexcept {
  spanprof::preload::Finish();
  return spanprof::preload::AfterFailedExec(spanprof::preload::real_fexecve(fd, argv, envp));
}

[[gnu::visibility("default")]] int execl(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  auto** argv = static_cast<char**>(alloca(BytesOfArguments(first, list)));
  TakeArguments(first, list, argv);
  va_end(list);
  return Execve(path, argv, environ);
}
[[gnu::visibility("default")]] int execle(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  auto** argv = static_cast<char**>(alloca(BytesOfArguments(first, list)));
  TakeArguments(first, list, argv);
  char** const envp = va_arg(list, char**);
  va_end(list);
  return Execve(path, argv, envp);
}
[[gnu::visibility("default")]] int execlp(const char* file, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  auto** argv = static_cast<char**>(alloca(BytesOfArguments(first, list)));
  TakeArguments(first, list, argv);
  va_end(list);
  return ExecveOnPath(file, argv, environ);
}

}  // extern "C"
