// A web shop on 127.0.0.1: a few worker threads that answer HTTP requests and publish the span that
// each of them works on. Profile it:
//
//   spanprof record -o shop.pb.gz --cpu 1ms --wall 10ms -- shop_service 8080 &
//   shop_load 8080 10
//
// It says which port it listens on (0: any that is free), and ends on SIGTERM or Ctrl-C.

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

#include "shop_requests.h"
#include <spanprof/context.hpp>

namespace {

std::atomic<bool> stop{false};

std::string_view HeaderOf(std::string_view head, std::string_view name) {
  const size_t at = head.find(name);
  if (at == std::string_view::npos) return {};
  const size_t begin = at + name.size();
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

// Requests without a body, one after the other, until the client hangs up.
void ServeConnection(int connection) {
  std::string input;
  char buffer[4096];
  while (!stop) {
    const size_t end = input.find("\r\n\r\n");
    if (end == std::string::npos) {
      const ssize_t got = recv(connection, buffer, sizeof buffer, 0);
      if (got <= 0 || input.size() > 65536) break;
      input.append(buffer, static_cast<size_t>(got));
      continue;
    }
    const std::string_view head = std::string_view(input).substr(0, end + 2);
    const size_t path = head.find(' ');
    const size_t path_end = path == std::string_view::npos ? path : head.find(' ', path + 1);
    if (path_end == std::string_view::npos) break;
    const std::string body = HandleRequest({.path = head.substr(path + 1, path_end - path - 1),
                                            .traceparent = HeaderOf(head, "\r\ntraceparent: "),
                                            .tenant = HeaderOf(head, "\r\nX-Tenant: ")});
    const std::string answer =
        "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    if (send(connection, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) break;
    input.erase(0, end + 4);
  }
  close(connection);
}

void RunWorker(int listener, unsigned number) {
  pthread_setname_np(pthread_self(), ("worker-" + std::to_string(number)).c_str());
  while (!stop) {
    const int connection = accept(listener, nullptr, nullptr);
    if (connection >= 0) ServeConnection(connection);
  }
}

int Listen(uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t size = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, 64) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::fprintf(stderr, "shop_service: port %u cannot be had: %s\n", port, strerror(errno));
    exit(1);
  }
  std::printf("%u\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return listener;
}

}  // namespace

int main(int argc, char** argv) {
  if (spanprof_init("ctxstorage=otel,attributes=http.route;tenant,service=shop,version=1.0") != 0) {
    std::fprintf(stderr, "shop_service: %s\n", spanprof_error());
    return 1;
  }
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGINT);
  sigaddset(&ending, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  const int listener = Listen(static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0));
  std::vector<std::thread> workers;
  for (unsigned i = 1; i <= 4; ++i) workers.emplace_back(RunWorker, listener, i);
  int signal = 0;
  sigwait(&ending, &signal);
  stop = true;
  shutdown(listener, SHUT_RDWR);
  for (std::thread& worker : workers) worker.join();
  return 0;
}
