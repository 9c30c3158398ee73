#pragma once

// HotSpot's attach protocol: a library is loaded into a JVM that runs, without a restart.
//
//   Result<JvmProcess> jvm = JvmProcess::Open(pid, command);
//   Result<JvmConnection> connection = JvmConnection::Open(*jvm, limits);
//   Result<int> code = connection->Load("/usr/lib/libspanprof-jvm.so", "status");  //
//   Agent_OnAttach's
//
// A JVM listens on the socket /tmp/.java_pidN of its own namespaces, N being its own number there.
// If there is none yet, a file .attach_pidN in its working folder or /tmp and a SIGQUIT make it
// listen. /tmp is everybody's: a socket counts only if it is the JVM's user's and the JVM itself is
// behind it. What the JVM answers is bounded and not trusted. Not thread-safe.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "collect/jvm_process.h"

namespace spanprof::collect {

struct AttachLimits {
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds answer{60'000};
  const std::atomic<bool>* interrupted = nullptr;  // ends every wait, with EINTR
};

inline constexpr std::size_t kMaxAttachArgument = 1024;  // of JVMs before 24
inline constexpr std::size_t kMaxAttachAnswer = std::size_t{64} << 10;

// What a JVM says to `load`: the return code of Agent_OnAttach, or the JVM's reason why it was not
// called. JDK 25 says 0 on the first line even then.
[[nodiscard]] Result<int> ParseLoadAnswer(std::string_view answer, const std::string& library);

class JvmConnection {
 public:
  // To be called as the user who runs the command; acts as the JVM's user where needed. `jvm` has
  // to outlive the connection.
  [[nodiscard]] static Result<JvmConnection> Open(const JvmProcess& jvm,
                                                  const AttachLimits& limits);

  // Once: the JVM closes the connection behind its answer.
  [[nodiscard]] Result<int> Load(const std::string& library, const std::string& options);

 private:
  JvmConnection(const JvmProcess& jvm, const AttachLimits& limits, UniqueFd socket)
      : jvm_(&jvm), limits_(limits), socket_(std::move(socket)) {}
  Result<void> Send(std::string_view request);
  Result<std::string> Receive();
  Result<void> WaitFor(short events, std::chrono::steady_clock::time_point deadline);

  const JvmProcess* jvm_;
  AttachLimits limits_;
  UniqueFd socket_;
};

}  // namespace spanprof::collect
