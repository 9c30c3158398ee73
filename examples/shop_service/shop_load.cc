// Customers of shop_service: `shop_load PORT SECONDS`. Each request carries a trace of its own.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

namespace {

std::atomic<unsigned long> answered{0};

int Connect(uint16_t port) {
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    std::perror("shop_load: the shop does not answer");
    exit(1);
  }
  return connection;
}

bool ReadAnswer(int connection) {
  std::string bytes;
  char buffer[65536];
  for (;;) {
    const ssize_t got = recv(connection, buffer, sizeof buffer, 0);
    if (got <= 0) return false;
    bytes.append(buffer, static_cast<size_t>(got));
    const size_t head = bytes.find("\r\n\r\n");
    const size_t length = bytes.find("Content-Length: ");
    if (head == std::string::npos || length == std::string::npos) continue;
    if (bytes.size() >= head + 4 + std::strtoul(bytes.c_str() + length + 16, nullptr, 10)) {
      return true;
    }
  }
}

void Shop(uint16_t port, unsigned seed, std::chrono::steady_clock::time_point end) {
  constexpr const char* kTenants[] = {"acme", "globex", "initech"};
  const int connection = Connect(port);
  std::mt19937_64 random(seed);
  while (std::chrono::steady_clock::now() < end) {
    const auto choice = random() % 10;
    const std::string path = choice < 4   ? "/product/" + std::to_string(random() % 1000)
                             : choice < 7 ? "/search?q=e"
                             : choice < 9 ? "/cart"
                                          : "/checkout";
    char trace[64];
    std::snprintf(trace, sizeof trace, "00-%016lx%016lx-%016lx-01",
                  static_cast<unsigned long>(random()), static_cast<unsigned long>(random()),
                  static_cast<unsigned long>(random()));
    const std::string request = "GET " + path + " HTTP/1.1\r\ntraceparent: " + trace +
                                "\r\nX-Tenant: " + kTenants[random() % 3] + "\r\n\r\n";
    if (send(connection, request.data(), request.size(), MSG_NOSIGNAL) < 0) break;
    if (!ReadAnswer(connection)) break;
    ++answered;
  }
  close(connection);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: shop_load PORT SECONDS\n");
    return 2;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[2]));
  std::vector<std::thread> customers;
  for (unsigned i = 1; i <= 4; ++i) {
    customers.emplace_back(Shop, static_cast<uint16_t>(std::atoi(argv[1])), i, end);
  }
  for (std::thread& customer : customers) customer.join();
  std::printf("%lu requests were answered\n", answered.load());
  return 0;
}
