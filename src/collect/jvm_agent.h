#pragma once

// Asking the agent in a JVM, from outside: the library is loaded by the attach protocol, which is
// also how an agent that is there already is told something.
//
//   Result<AgentLibrary> library = AgentLibrary::For(*jvm, "/usr/lib/libspanprof-jvm.so");
//   Result<std::string> words = AskAgent(*jvm, *library, "start,cpu=1ms,file=/tmp/a.jfr", limits);
//
// The protocol returns a number only. So the agent is given a file to write its answer to: in a
// private folder in the JVM's own filesystem, made with the JVM's user's rights, and removed
// afterwards. Not thread-safe.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "collect/jvm_attach.h"
#include "collect/jvm_process.h"
#include "collect/target_folder.h"

namespace spanprof::collect {

inline constexpr std::size_t kMaxAgentAnswer = std::size_t{1} << 20;

// "ok" or "error" on the first line. Behind "ok" the text; behind "error" the message on a line,
// and the hint, if there is one, on the next. As attach_answer.h of the agent writes it.
[[nodiscard]] Result<std::string> ParseAgentAnswer(std::string_view answer);

// The agent's library, where the JVM can load it.
class AgentLibrary {
 public:
  // The one that the JVM has loaded already; a second copy must not come in.
  [[nodiscard]] static AgentLibrary Loaded(const JvmProcess& jvm) {
    return AgentLibrary(jvm.agent_library());
  }
  // `path` is ours, absolute. Where the JVM does not see that very file, or may not read it, it
  // gets a copy.
  [[nodiscard]] static Result<AgentLibrary> For(const JvmProcess& jvm, const std::string& path);

  // As the JVM sees it.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool is_copy() const { return copy_.has_value(); }
  // A copy is removed at the end unless this is called: it may be loaded.
  void Keep() {
    if (copy_) copy_->Keep();
  }

 private:
  explicit AgentLibrary(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::optional<TargetFolder> copy_;
};

// Returns the agent's words. `options` begin with a command.
[[nodiscard]] Result<std::string> AskAgent(const JvmProcess& jvm, AgentLibrary& library,
                                           const std::string& options, const AttachLimits& limits);

}  // namespace spanprof::collect
