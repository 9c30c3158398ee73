#pragma once

// The file to which the agent writes what became of a command that `spanprof jvm` sent it: the
// attach protocol itself returns a number only.
//
//   std::string_view options = "answer=/tmp/spanprof-6b1f/answer,start,cpu=1ms";
//   Result<AttachAnswer> answer = AttachAnswer::Take(options);   // options: "start,cpu=1ms"
//   answer->Write(agent.Execute(std::string(options)));
//
// The path comes from whoever may attach, and lies in /tmp. So a file is never made, no link is
// followed, and nothing is written to what is not a plain file of the JVM's user or root.

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spanprof::jvm {

class AttachAnswer {
 public:
  // Takes the word "answer=PATH" off the front of `options`; without one nobody waits, and Write()
  // does nothing. Fails if the file is not there, not plain, or somebody else's: then the command
  // that asked is gone, or was never ours.
  [[nodiscard]] static Result<AttachAnswer> Take(std::string_view& options);

  [[nodiscard]] bool is_awaited() const { return file_.valid(); }
  // "ok" and the text; or "error", the message and the hint, a line each.
  void Write(const Result<std::string>& outcome);

 private:
  explicit AttachAnswer(UniqueFd file) : file_(std::move(file)) {}

  UniqueFd file_;
};

}  // namespace spanprof::jvm
