#include "collect/jvm_agent.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include <sys/stat.h>

#include "base/printable_text.h"
#include "base/unique_fd.h"
#include "collect/acting_as.h"

namespace spanprof::collect {
namespace {

constexpr const char* kAnswerFile = "answer";

// The JVM's user can read the file at `path`, and it is ours.
bool SeesSameFile(const JvmProcess& jvm, const std::string& path, const struct stat& ours) {
  const UniqueFd file = OpenBeneathRoot(jvm.root(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat theirs = {};
  return file.valid() && fstat(file.get(), &theirs) == 0 && theirs.st_dev == ours.st_dev &&
         theirs.st_ino == ours.st_ino;
}

// False with errno.
bool CopyAll(int from, int to) {
  char buffer[std::size_t{64} << 10];
  for (;;) {
    const ssize_t got = read(from, buffer, sizeof buffer);
    if (got == 0) return true;
    if (got < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = write(to, buffer + done, static_cast<std::size_t>(got - done));
      if (put < 0 && errno != EINTR) return false;
      done += std::max<ssize_t>(put, 0);
    }
  }
}

Result<std::string> ReadAnswer(const UniqueFd& file) {
  std::string text(kMaxAgentAnswer, '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(), 0);
  if (got < 0) return Fail(errno, std::string("cannot read the answer: ") + std::strerror(errno));
  text.resize(static_cast<std::size_t>(got));
  return text;
}

}  // namespace

Result<std::string> ParseAgentAnswer(std::string_view answer) {
  const auto take_line = [&answer] {
    const std::string_view line = answer.substr(0, answer.find('\n'));
    answer.remove_prefix(std::min(line.size() + 1, answer.size()));
    return line;
  };
  const std::string_view kind = take_line();
  if (kind == "ok") return std::string(answer);
  if (kind == "error") {
    const std::string message(take_line());
    const std::string hint(take_line());
    return Fail(EREMOTEIO, message.empty() ? "the agent failed without a reason" : message, hint);
  }
  return Fail(EPROTO,
              kind.empty() ? "the agent gave no answer"
                           : "the agent's answer cannot be understood: " + Quoted(kind),
              "the JVM has a libspanprof-jvm.so of another version: use the spanprof that it came "
              "with, or restart the JVM");
}

Result<AgentLibrary> AgentLibrary::For(const JvmProcess& jvm, const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status = {};
  if (!file.valid() || fstat(file.get(), &status) != 0) {
    const int code = errno;
    return Fail(code, "cannot read the library " + path + ": " + std::strerror(code),
                "give the path of libspanprof-jvm.so by --library");
  }
  if (!S_ISREG(status.st_mode)) {
    return Fail(EINVAL, "the library " + path + " is not a file",
                "give the path of libspanprof-jvm.so by --library");
  }
  const Result<ActingAs> user = ActingAs::User(jvm.uid(), jvm.gid());
  if (!user) return tl::make_unexpected(user.error());
  AgentLibrary library(path);
  if (SeesSameFile(jvm, path, status)) return library;
  Result<TargetFolder> folder =
      TargetFolder::Create(jvm.root(), jvm.namespace_pid(), jvm.uid(), TargetFolder::Use::kCode);
  if (!folder) return tl::make_unexpected(folder.error());
  // By this name it is found again in the maps.
  const std::string name(kAgentLibraryName);
  const Result<UniqueFd> copy = folder->CreateFile(name, 0500);
  if (!copy) return tl::make_unexpected(copy.error());
  if (!CopyAll(file.get(), copy->get())) {
    const int code = errno;
    return Fail(code, "cannot copy the library to " + folder->PathOf(name) + " of " + jvm.Title() +
                          ": " + std::strerror(code));
  }
  library.path_ = folder->PathOf(name);
  library.copy_.emplace(*std::move(folder));
  return library;
}

Result<std::string> AskAgent(const JvmProcess& jvm, AgentLibrary& library,
                             const std::string& options, const AttachLimits& limits) {
  Result<ActingAs> user = ActingAs::User(jvm.uid(), jvm.gid());
  if (!user) return tl::make_unexpected(user.error());
  Result<TargetFolder> folder =
      TargetFolder::Create(jvm.root(), jvm.namespace_pid(), jvm.uid(), TargetFolder::Use::kData);
  if (!folder) return tl::make_unexpected(folder.error());
  const Result<UniqueFd> answer = folder->CreateFile(kAnswerFile, 0600);
  if (!answer) return tl::make_unexpected(answer.error());

  Result<JvmConnection> connection = JvmConnection::Open(jvm, limits);
  if (!connection) return tl::make_unexpected(connection.error());
  const Result<int> code =
      connection->Load(library.path(), "answer=" + folder->PathOf(kAnswerFile) + "," + options);
  if (!code) {
    // A JVM that has not refused it may be loading it yet.
    if (code.error().code != ENOEXEC) library.Keep();
    return tl::make_unexpected(code.error());
  }
  library.Keep();
  if (*code != 0) {
    return Fail(
        EREMOTEIO,
        "the agent in " + jvm.Title() + " could not answer (code " + std::to_string(*code) + ")",
        "see what it says on the JVM's standard error");
  }
  Result<std::string> text = ReadAnswer(*answer);
  if (!text) return text;
  return ParseAgentAnswer(*text);
}

}  // namespace spanprof::collect
