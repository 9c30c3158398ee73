#pragma once

// A process in which a HotSpot JVM runs, and what has to be known before it is asked for anything.
//
//   Result<JvmProcess> jvm = JvmProcess::Open(4242, "spanprof jvm 4242 status");
//   if (!jvm->agent_library().empty()) ...   // the agent is in it already
//
// It is held: when the process has ended, its number may be another's, but what is asked of this
// object fails. What the process says of itself is not trusted. Not thread-safe.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "collect/process_directory.h"
#include "collect/process_maps.h"

namespace spanprof::collect {

inline constexpr std::string_view kAgentLibraryName = "libspanprof-jvm.so";

// What a status file says that decides how a JVM may be treated.
struct ProcessStatus {
  char state = '?';  // 'Z' has ended, 'T' is stopped
  uid_t uid = 0;     // the effective ones
  gid_t gid = 0;
  std::uint64_t caught_signals = 0;

  [[nodiscard]] bool Catches(int signal) const { return (caught_signals >> (signal - 1) & 1) != 0; }
};

// EPROTO if a line is missing or malformed.
[[nodiscard]] Result<ProcessStatus> ParseProcessStatus(std::string_view status);

enum class VirtualMachine { kNone, kHotSpot, kOpenJ9 };

// What the mapped files of a process say.
struct JvmMappings {
  VirtualMachine machine = VirtualMachine::kNone;
  bool uses_musl = false;
  std::string agent_library;  // as the maps name it
};

[[nodiscard]] JvmMappings FindJvm(const ProcessMaps& maps);

// Whether the options of a JVM, arguments with a NUL behind each, forbid to attach to it.
[[nodiscard]] bool ForbidsAttaching(std::string_view arguments);

class JvmProcess {
 public:
  // `command` is what the user ran, for hints. The error says why the process is none, or why it
  // cannot be reached.
  [[nodiscard]] static Result<JvmProcess> Open(pid_t pid, std::string_view command);

  [[nodiscard]] pid_t pid() const { return directory_.pid(); }
  // "process 4242", for messages.
  [[nodiscard]] std::string Title() const { return "process " + std::to_string(pid()); }
  // Its number in its own pid namespace.
  [[nodiscard]] std::uint32_t namespace_pid() const { return directory_.namespace_pid(); }
  [[nodiscard]] uid_t uid() const { return uid_; }
  [[nodiscard]] gid_t gid() const { return gid_; }
  // Folders, opened O_PATH: its root, and where it works.
  [[nodiscard]] int root() const { return root_.get(); }
  [[nodiscard]] int working_folder() const { return working_folder_.get(); }
  // A path means the same file here and there.
  [[nodiscard]] bool shares_files() const { return shares_files_; }
  [[nodiscard]] bool uses_musl() const { return uses_musl_; }
  [[nodiscard]] bool forbids_attaching() const { return forbids_attaching_; }
  // The agent that it has loaded, as it sees the path itself; empty if there is none.
  [[nodiscard]] const std::string& agent_library() const { return agent_library_; }

  // Fails with ESRCH if it has ended.
  [[nodiscard]] Result<ProcessStatus> Status() const;
  // Waits for its end, but no longer than `time`. True: it has ended.
  [[nodiscard]] bool EndsWithin(std::chrono::milliseconds time) const;
  // Only for one that catches it: others die of it.
  [[nodiscard]] Result<void> SendQuit() const;

 private:
  explicit JvmProcess(ProcessDirectory directory) : directory_(std::move(directory)) {}
  Result<void> OpenFolders(std::string_view command);
  Result<void> LookAtMappings(std::string_view command);
  void LookAtArguments();

  ProcessDirectory directory_;
  UniqueFd handle_;  // a pidfd
  UniqueFd root_;
  UniqueFd working_folder_;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  bool shares_files_ = false;
  bool uses_musl_ = false;
  bool forbids_attaching_ = false;
  std::string agent_library_;
};

}  // namespace spanprof::collect
