#pragma once

// Where probes wake a sleeping harvester, and hand their memory over: a Unix socket in a folder
// that only this user can look into. Peers of another user are refused and counted. The folder, the
// socket and the file for foreign probes are removed at the end. Not thread-safe.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spanprof::coroutine {

// What asks a flight recorder for what it has. A probe sends other bytes.
inline constexpr char kDumpRequest = 'D';

struct HandedOver {
  UniqueFd memory;
  pid_t pid = 0;  // of the sender, by the kernel's word
};

class WakeListener {
 public:
  [[nodiscard]] static Result<WakeListener> Create();
  ~WakeListener();
  WakeListener(WakeListener&& other) noexcept;
  WakeListener& operator=(WakeListener&&) = delete;

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::string socket_path() const { return folder_ + "/wake"; }
  [[nodiscard]] std::string file_path() const { return folder_ + "/stations"; }
  // Makes the file of CTP_SHM_PATH: an empty area that says whose it is.
  [[nodiscard]] Result<UniqueFd> CreateFile(uint32_t stations);

  // Waits until somebody sends a byte or connects, or one of `others` becomes readable, but no
  // longer than the time.
  void Wait(int milliseconds, const std::vector<int>& others);
  // Takes bytes and new connections without waiting; returns the memory that was handed over.
  [[nodiscard]] std::vector<HandedOver> Receive();

  // Connections on which somebody asked for a dump since the last call.
  [[nodiscard]] std::vector<UniqueFd> TakeDumpRequests() {
    return std::exchange(dump_requests_, {});
  }

  [[nodiscard]] uint64_t refused_peers() const { return refused_peers_; }

 private:
  struct Connection {
    UniqueFd socket;
    pid_t pid = 0;
  };

  WakeListener(std::string folder, UniqueFd socket)
      : folder_(std::move(folder)), socket_(std::move(socket)) {}
  void Accept();

  std::string folder_;
  UniqueFd socket_;
  std::vector<Connection> connections_;
  std::vector<UniqueFd> dump_requests_;
  uint64_t refused_peers_ = 0;
};

}  // namespace spanprof::coroutine
