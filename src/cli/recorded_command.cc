#include "cli/recorded_command.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/printable_text.h"
#include "base/unique_fd.h"
#include "cli/installed_library.h"
#include "cli/program_file.h"

namespace spanprof::cli {
namespace {

std::string ErrorText(int error_number) { return std::generic_category().message(error_number); }

std::vector<std::string> ChildEnvironment(const std::string& library, const Options& options,
                                          bool children) {
  std::vector<std::string> environment;
  std::string preload = library;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("SPANPROF=") || text.starts_with("SPANPROF_CHILDREN=")) continue;
    if (text.starts_with("LD_PRELOAD=")) {
      // Ours first: it stands before the functions that others replace too.
      if (text.size() > 11) preload += ":" + std::string(text.substr(11));
      continue;
    }
    environment.emplace_back(text);
  }
  environment.push_back("LD_PRELOAD=" + preload);
  environment.push_back("SPANPROF=" + ToString(options));
  if (!children) environment.emplace_back("SPANPROF_CHILDREN=no");
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The signals that are for the command as much as for us, from before there is a folder or a
// command that one of them could leave behind.
class SignalsForCommand {
 public:
  SignalsForCommand() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &interrupt_);
    sigaction(SIGQUIT, &ignore, &quit_);
    const sigset_t ending = Ending();
    sigprocmask(SIG_BLOCK, &ending, &mask_);
  }
  ~SignalsForCommand() {
    if (!kept_) Restore();
  }
  SignalsForCommand(const SignalsForCommand&) = delete;
  SignalsForCommand& operator=(const SignalsForCommand&) = delete;
  // There is a command to wait for.
  void Keep() { kept_ = true; }
  // In the child.
  void Restore() const {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGQUIT, &quit_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }
  // Those to wait for.
  static sigset_t Ending() {
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    sigaddset(&ending, SIGCHLD);
    return ending;
  }

 private:
  struct sigaction interrupt_ = {};
  struct sigaction quit_ = {};
  sigset_t mask_ = {};
  bool kept_ = false;
};

// In the child, between fork and exec.
[[noreturn]] void RunProgram(const char* program, char** argv, char** envp,
                             const std::optional<InvokingUser>& user, const char* output,
                             int problem) {
  const auto fail = [problem] {
    const int error_number = errno;
    if (write(problem, &error_number, sizeof error_number) < 0) _exit(126);
    _exit(127);
  };
  if (user) {
    const passwd* entry = getpwuid(user->uid);
    if (entry != nullptr && initgroups(entry->pw_name, user->gid) != 0) fail();
    if (setgid(user->gid) != 0 || setuid(user->uid) != 0) fail();
  }
  if (*output != '\0') {
    const int fd = open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0) fail();
  }
  execve(program, argv, envp);
  fail();
  _exit(127);
}

}  // namespace

std::optional<InvokingUser> UserBehindSudo() {
  const char* uid = getenv("SUDO_UID");
  const char* gid = getenv("SUDO_GID");
  if (geteuid() != 0 || uid == nullptr || gid == nullptr) return std::nullopt;
  const InvokingUser user = {static_cast<uid_t>(strtoul(uid, nullptr, 10)),
                             static_cast<gid_t>(strtoul(gid, nullptr, 10))};
  if (user.uid == 0) return std::nullopt;
  return user;
}

// ---- PrivateFolder ----

Result<PrivateFolder> PrivateFolder::Create() {
  const char* base = getenv("TMPDIR");
  std::string path =
      std::string(base == nullptr || *base != '/' ? "/tmp" : base) + "/spanprof-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return Fail(errno,
                "a temporary folder cannot be made at " + Quoted(path) + ": " + ErrorText(errno),
                "set TMPDIR to a folder that you can write to");
  }
  return PrivateFolder(std::move(path));
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

PrivateFolder::~PrivateFolder() {
  if (path_.empty()) return;
  for (const std::string& name : Files()) unlink((path_ + "/" + name).c_str());
  rmdir(path_.c_str());
}

std::vector<std::string> PrivateFolder::Files() const {
  std::vector<std::string> names;
  DIR* folder = opendir(path_.c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

// ---- RecordedCommand ----

Result<RecordedCommand> RecordedCommand::Start(const std::vector<std::string>& command,
                                               Options options, const Settings& settings) {
  const Result<ProgramFile> program = ReadProgram(command.front());
  if (!program) return tl::make_unexpected(program.error());
  if (std::optional<Error> reason = WhyNotPreloadable(*program)) {
    return tl::make_unexpected(*std::move(reason));
  }
  const Result<std::string> library = FindInstalledLibrary("libspanprof-preload.so");
  if (!library) return tl::make_unexpected(library.error());
  SignalsForCommand signals;
  Result<PrivateFolder> folder = PrivateFolder::Create();
  if (!folder) return tl::make_unexpected(folder.error());
  const std::optional<InvokingUser> user = UserBehindSudo();
  if (user && chown(folder->path().c_str(), user->uid, user->gid) != 0) {
    return Fail(
        errno, "the temporary folder cannot be given to the user behind sudo: " + ErrorText(errno));
  }
  options.command = spanprof::Command::kNone;
  options.file = folder->path() + "/" + settings.file;
  options.format = OutputFormat::kJfr;
  options.fork = settings.children ? ForkPolicy::kFollow : ForkPolicy::kQuiet;

  std::vector<std::string> arguments = command;
  std::vector<std::string> environment = ChildEnvironment(*library, options, settings.children);
  std::vector<char*> argv = Pointers(arguments);
  std::vector<char*> envp = Pointers(environment);
  const std::string start = program->script.empty() ? program->path : program->script;

  // What the command leaves behind becomes our child, so that we can say so.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int problem[2];
  if (pipe2(problem, O_CLOEXEC) != 0) return Fail(errno, "no pipe: " + ErrorText(errno));
  const UniqueFd read_end(problem[0]);
  UniqueFd write_end(problem[1]);
  const pid_t pid = fork();
  if (pid < 0) return Fail(errno, "no process can be started: " + ErrorText(errno));
  if (pid == 0) {
    signals.Restore();
    RunProgram(start.c_str(), argv.data(), envp.data(), user, settings.output.c_str(), problem[1]);
  }
  write_end = UniqueFd();
  int error_number = 0;
  if (read(read_end.get(), &error_number, sizeof error_number) == sizeof error_number) {
    waitpid(pid, nullptr, 0);
    return Fail(error_number, Quoted(start) + " cannot be run: " + ErrorText(error_number));
  }
  signals.Keep();
  return RecordedCommand(*std::move(folder), pid);
}

bool RecordedCommand::WaitFor(std::chrono::milliseconds time) {
  if (status_) return true;
  // Who ends us means the command too.
  const sigset_t ending = SignalsForCommand::Ending();
  const auto deadline = std::chrono::steady_clock::now() + time;
  for (;;) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      return true;
    }
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    const timespec wait = {static_cast<time_t>(left.count() / 1'000'000'000),
                           static_cast<long>(left.count() % 1'000'000'000)};
    siginfo_t info = {};
    const int signal = sigtimedwait(&ending, &info, &wait);
    if (signal == SIGTERM || signal == SIGHUP) kill(pid_, signal);
  }
}

int RecordedCommand::Wait(std::optional<std::chrono::nanoseconds> limit) {
  constexpr std::chrono::milliseconds kLong = std::chrono::hours(1);
  if (limit && !WaitFor(std::chrono::duration_cast<std::chrono::milliseconds>(*limit))) {
    kill(pid_, SIGTERM);
  }
  while (!WaitFor(kLong)) {
  }
  return *status_;
}

std::vector<std::string> RecordedCommand::ProfileFiles() const {
  std::vector<std::string> files;
  for (const std::string& name : folder_.Files()) {
    // The part file of a killed process that never finished a chunk stands alone.
    const bool is_part = name.ends_with(".jfr.part");
    const std::string file = is_part ? name.substr(0, name.size() - 5) : name;
    if (!file.ends_with(".jfr")) continue;
    const std::string path = folder_.path() + "/" + file;
    if (std::find(files.begin(), files.end(), path) == files.end()) files.push_back(path);
  }
  return files;
}

bool RecordedCommand::LeftProcessesBehind() { return waitpid(-1, nullptr, WNOHANG) == 0; }

}  // namespace spanprof::cli
