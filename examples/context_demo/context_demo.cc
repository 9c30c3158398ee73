// A small shop that publishes its spans. Worker threads handle requests; each request is a trace
// with a span for the handler and one for its query. Watch it from outside while it runs:
//
//   context_demo 10 &
//   spanprof context --watch $!

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <spanprof/context.hpp>

namespace {

constexpr unsigned kRoute = 0, kTenant = 1;  // positions in attributes=
constexpr const char* kRoutes[] = {"/cart", "/checkout", "/search", "/product/{id}"};
constexpr const char* kTenants[] = {"acme", "globex", "initech"};

std::atomic<bool> stop{false};

void Work(std::chrono::microseconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) {
  }
}

void Query(std::mt19937_64& random, uint64_t trace_high, uint64_t trace_low, uint64_t root) {
  const spanprof::Scope span(trace_high, trace_low, random(), root);
  std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 60));
}

void HandleRequest(std::mt19937_64& random) {
  const uint64_t trace_high = random(), trace_low = random(), root = random();
  const spanprof::Scope span(trace_high, trace_low, root, root);
  spanprof::set_tag(kRoute, kRoutes[random() % std::size(kRoutes)]);
  spanprof::set_tag(kTenant, kTenants[random() % std::size(kTenants)]);
  Work(std::chrono::microseconds(500 + random() % 2000));
  Query(random, trace_high, trace_low, root);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

void RunWorker(unsigned number) {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), ("worker-" + std::to_string(number)).c_str());
#endif
  std::mt19937_64 random(number * 7919 + 1);
  while (!stop) HandleRequest(random);
}

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 10;
  if (spanprof_init("ctxstorage=otel,attributes=http.route;tenant,service=shop,version=1.0") != 0) {
    std::fprintf(stderr, "context_demo: %s\n", spanprof_error());
    return 1;
  }
  std::vector<std::thread> workers;
  for (unsigned i = 1; i <= 4; ++i) workers.emplace_back(RunWorker, i);
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  stop = true;
  for (std::thread& worker : workers) worker.join();
  return 0;
}
