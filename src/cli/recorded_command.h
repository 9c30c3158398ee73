#pragma once

// A command that is run under the preloaded profiler: started, waited for, and its profiles
// gathered in a private folder, a file for each process.
//
//   Result<RecordedCommand> command = RecordedCommand::Start({"make", "-j8"}, options, {});
//   const int status = command->Wait(std::nullopt);
//   for (const std::string& file : command->ProfileFiles()) ...
//
// Ctrl-C goes to the command and not to us: the terminal sends it to both, and we have a profile to
// write. One at a time, on the main thread.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/options.h"
#include "base/result.h"

namespace spanprof::cli {

// A folder that only this user can look into; removed with everything in it at the end.
class PrivateFolder {
 public:
  [[nodiscard]] static Result<PrivateFolder> Create();
  ~PrivateFolder();
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // Names in it, sorted, without the path.
  [[nodiscard]] std::vector<std::string> Files() const;

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

class RecordedCommand {
 public:
  struct Settings {
    bool children = true;         // those that it forks and execs
    std::string file = "%p.jfr";  // of each process, in the folder
    std::string output = {};      // where its standard output and error go; empty: to ours
  };

  // `options` say what is sampled. Fails if the program is not there, or cannot be profiled by
  // preloading: with what to do instead.
  [[nodiscard]] static Result<RecordedCommand> Start(const std::vector<std::string>& command,
                                                     Options options, const Settings& settings);

  // Waits until the command ends; after `limit` it is asked to (SIGTERM). Returns its exit code, or
  // 128 and the number of the signal that ended it.
  int Wait(std::optional<std::chrono::nanoseconds> limit);
  // For a while; true: it has ended, and Wait returns at once.
  bool WaitFor(std::chrono::milliseconds time);

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const PrivateFolder& folder() const { return folder_; }
  // The profiles that are there, with their paths; part files of killed processes count.
  [[nodiscard]] std::vector<std::string> ProfileFiles() const;
  // Whether processes that the command started are still there.
  [[nodiscard]] static bool LeftProcessesBehind();

 private:
  RecordedCommand(PrivateFolder folder, pid_t pid) : folder_(std::move(folder)), pid_(pid) {}

  PrivateFolder folder_;
  pid_t pid_ = 0;
  std::optional<int> status_;
};

// The user for whom sudo runs this command: what is started for them is to be theirs.
struct InvokingUser {
  uid_t uid;
  gid_t gid;
};
[[nodiscard]] std::optional<InvokingUser> UserBehindSudo();

}  // namespace spanprof::cli
