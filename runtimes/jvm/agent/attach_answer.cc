#include "agent/attach_answer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include <sys/stat.h>

#include "base/printable_text.h"

namespace spanprof::jvm {
namespace {

constexpr std::string_view kWord = "answer=";

std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

Result<AttachAnswer> AttachAnswer::Take(std::string_view& options) {
  if (!options.starts_with(kWord)) return AttachAnswer(UniqueFd());
  const std::string_view word = options.substr(0, options.find(','));
  const std::string path(word.substr(kWord.size()));
  options.remove_prefix(std::min(word.size() + 1, options.size()));
  const auto fail = [&path](int code, const std::string& reason) {
    return Fail(code, "nothing is done for the command that attached: its file for the answer, " +
                          Quoted(path) + ", " + reason);
  };
  // Not blocked by a pipe, not given a terminal.
  UniqueFd file(open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid()) {
    const int code = errno;
    return fail(code, std::string("cannot be opened: ") + std::strerror(code));
  }
  struct stat status = {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) {
    return fail(EPERM, "is not a plain file");
  }
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    return fail(EPERM, "belongs to user " + std::to_string(status.st_uid));
  }
  return AttachAnswer(std::move(file));
}

void AttachAnswer::Write(const Result<std::string>& outcome) {
  if (!is_awaited()) return;
  const std::string text = outcome ? "ok\n" + *outcome
                                   : "error\n" + OneLine(outcome.error().message) + "\n" +
                                         OneLine(outcome.error().hint) + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t put = write(file_.get(), rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;  // a full disk: the command finds half an answer, or none, and says so
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
}

}  // namespace spanprof::jvm
