#pragma once

// An HTTP server on 127.0.0.1 for tests: each connection, one after the other, is given to the
// script, which may behave as badly as it likes.
//
//   TestServer server([](TestServer::Connection& c) { c.ReadRequest(); c.Write(kOk); });

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <poll.h>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_fd.h"

namespace spanprof::sending {

inline constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
inline constexpr std::string_view kUnavailable =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

class TestServer {
 public:
  class Connection {
   public:
    Connection(int fd, int number, std::atomic<bool>& stop)
        : fd_(fd), number_(number), stop_(stop) {}

    [[nodiscard]] int number() const { return number_; }  // from 1 on
    [[nodiscard]] bool stopping() const { return stop_; }

    // Reads head and body by Content-Length; returns the body.
    std::string ReadRequest() {
      std::string bytes;
      std::size_t end = std::string::npos;
      std::size_t size = 0;
      while (end == std::string::npos || bytes.size() < end + 4 + size) {
        if (!Wait(POLLIN)) break;
        char buffer[16384];
        const ssize_t got = recv(fd_, buffer, sizeof(buffer), 0);
        if (got <= 0) break;
        bytes.append(buffer, static_cast<std::size_t>(got));
        end = bytes.find("\r\n\r\n");
        const std::size_t length = bytes.find("Content-Length: ");
        if (end != std::string::npos && length < end) size = std::stoul(bytes.substr(length + 16));
      }
      if (end == std::string::npos) return {};
      head = bytes.substr(0, end + 4);
      return bytes.substr(end + 4);
    }

    // False once the client is gone.
    bool Write(std::string_view bytes) {
      while (!bytes.empty()) {
        if (!Wait(POLLOUT)) return false;
        const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      }
      return true;
    }

    // Waits until the client hangs up or the server is stopped.
    void HoldOpen() {
      while (Wait(POLLIN)) {
        char buffer[16384];
        if (recv(fd_, buffer, sizeof(buffer), 0) <= 0) return;
      }
    }

    void ReadSome() {
      char buffer[16];
      if (Wait(POLLIN)) (void)recv(fd_, buffer, sizeof(buffer), 0);
    }
    void EndAnswer() { shutdown(fd_, SHUT_WR); }

    // Makes the close a reset.
    void Reset() {
      const linger now{.l_onoff = 1, .l_linger = 0};
      setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    }

    std::string head;

   private:
    bool Wait(short events) {
      while (!stop_) {
        pollfd polled{fd_, events, 0};
        if (poll(&polled, 1, 20) > 0) return true;
      }
      return false;
    }

    int fd_;
    int number_;
    std::atomic<bool>& stop_;
  };

  using Script = std::function<void(Connection&)>;

  explicit TestServer(Script script) : script_(std::move(script)) {
    listener_ = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size);
    listen(listener_.get(), 16);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~TestServer() {
    stop_ = true;
    thread_.join();
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int connections() const { return connections_; }

  // Waits for the connection of that number; a test that waits in vain runs into its time-out.
  void AwaitConnections(int count) const {
    while (connections_ < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  void Serve() {
    while (!stop_) {
      pollfd polled{listener_.get(), POLLIN, 0};
      if (poll(&polled, 1, 20) <= 0) continue;
      const UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd.valid()) continue;
      Connection connection(fd.get(), ++connections_, stop_);
      script_(connection);
    }
  }

  Script script_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<int> connections_{0};
  std::thread thread_;
};

// The port of a server that is not there.
inline std::uint16_t DeadPort() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

}  // namespace spanprof::sending
