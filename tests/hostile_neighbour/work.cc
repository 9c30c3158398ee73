// Ordinary work, as much of it as there is time: memory, files, sockets, sorting.

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <unistd.h>
#include <vector>

#include <sys/socket.h>

#include "scenario.h"

namespace spanprof::hostile {
namespace {

uint64_t Next(uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

void UsesMemory() {
  std::vector<unsigned char*> blocks(200, nullptr);
  std::vector<size_t> sizes(200, 0);
  uint64_t state = 42;
  for (int i = 0; i < 20'000; ++i) {
    const size_t at = Next(state) % blocks.size();
    if (blocks[at] != nullptr) {
      const auto mark = static_cast<unsigned char>(at);
      Expect(blocks[at][0] == mark && blocks[at][sizes[at] - 1] == mark, "memory as it was left",
             blocks[at][0], mark);
    }
    sizes[at] = 1 + Next(state) % (i % 100 == 0 ? 300'000 : 700);
    blocks[at] = static_cast<unsigned char*>(realloc(blocks[at], sizes[at]));
    memset(blocks[at], static_cast<int>(at), sizes[at]);
  }
  for (unsigned char* block : blocks) free(block);
}

void WritesAndReadsFiles() {
  FILE* file = tmpfile();
  Expect(file != nullptr, "tmpfile", -errno, 0);
  if (file == nullptr) return;
  for (int i = 0; i < 5'000; ++i) fprintf(file, "%d %08x\n", i, i * 7);
  rewind(file);
  int64_t sum = 0;
  int number = 0;
  unsigned seven = 0;
  while (fscanf(file, "%d %x", &number, &seven) == 2) sum += number + static_cast<int64_t>(seven);
  fclose(file);
  ExpectEqual(sum, int64_t{8} * 4999 * 5000 / 2, "the sum of a file's lines");
}

bool SendAll(int socket, const unsigned char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t sent = send(socket, bytes, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    count -= static_cast<size_t>(sent);
  }
  return true;
}

void TalksThroughSockets() {
  int ends[2] = {};
  ExpectEqual(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0, "socketpair");
  constexpr size_t kBytes = 500'000;
  std::thread sender([&ends] {
    unsigned char bytes[1000];
    uint64_t state = 7;
    for (size_t sent = 0; sent < kBytes; sent += sizeof bytes) {
      for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(Next(state));
      if (!SendAll(ends[0], bytes, sizeof bytes)) break;
    }
    close(ends[0]);
  });
  uint64_t state = 7;
  size_t received = 0;
  size_t wrong = 0;
  unsigned char bytes[777];
  for (;;) {
    const ssize_t got = recv(ends[1], bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    for (ssize_t i = 0; i < got; ++i) {
      if (bytes[i] != static_cast<unsigned char>(Next(state))) ++wrong;
    }
    received += static_cast<size_t>(got);
  }
  sender.join();
  close(ends[1]);
  ExpectEqual(static_cast<int64_t>(received), kBytes, "bytes received");
  ExpectEqual(static_cast<int64_t>(wrong), 0, "bytes received wrong");
}

void Computes() {
  std::vector<double> numbers(20'000);
  uint64_t state = 1;
  for (double& number : numbers) number = static_cast<double>(Next(state) % 1000);
  const double before = std::accumulate(numbers.begin(), numbers.end(), 0.0);
  std::sort(numbers.begin(), numbers.end());
  Expect(std::is_sorted(numbers.begin(), numbers.end()), "sorted numbers", 0, 1);
  const double after = std::accumulate(numbers.begin(), numbers.end(), 0.0);
  Expect(before == after, "the sum of sorted numbers", static_cast<int64_t>(after),
         static_cast<int64_t>(before));
}

}  // namespace

const Scenario kWork[] = {
    {"uses memory", UsesMemory},
    {"writes and reads files", WritesAndReadsFiles},
    {"talks through sockets", TalksThroughSockets},
    {"computes", Computes},
    {nullptr, nullptr},
};

}  // namespace spanprof::hostile
