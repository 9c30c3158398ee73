// What a frame costs: by tables, by frame pointers, and where the stack's bounds are not known;
// what a look-up costs in a large object; what making the tables takes.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <random>
#include <ucontext.h>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include "sampling/code_map.h"
#include "sampling/native_registers.h"
#include "sampling/native_self_sampler.h"
#include "sampling/native_walker.h"

namespace spanprof::sampling {
namespace {

CodeMap& Map() {
  static CodeMap map;
  static const bool refreshed = map.Refresh().has_value();
  if (!refreshed) std::abort();
  return map;
}

template <class Body>
[[gnu::noinline]] int Deeper(int depth, Body& body) {
  if (depth == 0) {
    body();
    return 1;
  }
  const int result = Deeper(depth - 1, body);
  benchmark::ClobberMemory();
  return result + 1;
}

void WalkByTables(benchmark::State& state, bool bounds_known) {
  const NativeWalker walker(Map());
  const uint64_t high = bounds_known ? OwnStackBounds()[1] : 0;
  std::array<uint64_t, 1024> pcs{};
  auto body = [&] {
    ucontext_t here;
    getcontext(&here);
    unsigned frames = 0;
    for (auto _ : state) frames = walker.Walk(here, high, pcs.data(), pcs.size()).depth;
    state.counters["frames"] = frames;
    state.counters["each_frame"] = benchmark::Counter(
        static_cast<double>(frames),
        benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  };
  benchmark::DoNotOptimize(Deeper(static_cast<int>(state.range(0)), body));
}
void TablesKnownBounds(benchmark::State& state) { WalkByTables(state, true); }
void TablesUnknownBounds(benchmark::State& state) { WalkByTables(state, false); }
BENCHMARK(TablesKnownBounds)->Arg(1)->Arg(16)->Arg(64)->Arg(256);
BENCHMARK(TablesUnknownBounds)->Arg(1)->Arg(16)->Arg(64)->Arg(256);

// A chain of frame records in code without tables.
void FramePointers(benchmark::State& state) {
  void* code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CodeMap map;
  if (!map.Refresh()) std::abort();
  const NativeWalker walker(map);
  const auto frames = static_cast<std::size_t>(state.range(0));
  std::vector<uint64_t> stack(frames * 8 + 16);
  const auto low = reinterpret_cast<uint64_t>(stack.data());
  const uint64_t pc = reinterpret_cast<uint64_t>(code) + 100;
  for (std::size_t i = 0; i < frames; ++i) {
    stack[i * 8] = i + 1 < frames ? low + (i + 1) * 64 : 0;
    stack[i * 8 + 1] = pc;
  }
  ucontext_t context{};
#if defined(__x86_64__)
  context.uc_mcontext.gregs[REG_RIP] = static_cast<long long>(pc);
  context.uc_mcontext.gregs[REG_RSP] = static_cast<long long>(low);
  context.uc_mcontext.gregs[REG_RBP] = static_cast<long long>(low);
#elif defined(__aarch64__)
  context.uc_mcontext.pc = pc;
  context.uc_mcontext.sp = low;
  context.uc_mcontext.regs[29] = low;
#endif
  std::array<uint64_t, 1024> pcs{};
  unsigned found = 0;
  for (auto _ : state) {
    found = walker.Walk(context, low + stack.size() * 8, pcs.data(), pcs.size()).depth;
  }
  state.counters["frames"] = found;
  state.counters["each_frame"] =
      benchmark::Counter(static_cast<double>(found), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
  munmap(code, 4096);
}
BENCHMARK(FramePointers)->Arg(16)->Arg(64)->Arg(256);

// Addresses at random over a large object: what misses in the caches cost.
void LookUpInLargeObject(benchmark::State& state) {
  void* library = nullptr;
  for (const char* name :
       {"libLLVM.so.19.1", "libLLVM-16.so.1", "libLLVM-15.so.1", "libstdc++.so.6"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  CodeMap map({.max_table_bytes = std::size_t{256} << 20});
  if (library == nullptr || !map.Refresh()) std::abort();
  CodeMap::Reader reader(map);
  const CodeRegion* largest = nullptr;
  for (const ElfMapping& mapping : map.Mappings()) {
    const CodeRegion* region = reader.Find(mapping.start);
    if (region == nullptr || region->table == nullptr) continue;
    if (largest == nullptr || region->table->row_count() > largest->table->row_count()) {
      largest = region;
    }
  }
  std::mt19937_64 random(1);
  std::vector<uint64_t> addresses(1 << 16);
  for (uint64_t& address : addresses) {
    address =
        largest->table->begin() + random() % (largest->table->end() - largest->table->begin());
  }
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(largest->table->Find(addresses[next++ % addresses.size()])->cfa);
  }
  state.counters["rows"] = static_cast<double>(largest->table->row_count());
  state.counters["rules"] = static_cast<double>(largest->table->rule_count());
  state.counters["bytes"] = static_cast<double>(largest->table->memory_bytes());
  state.counters["code"] = static_cast<double>(largest->table->end() - largest->table->begin());
}
BENCHMARK(LookUpInLargeObject);

void MakeAllTables(benchmark::State& state) {
  std::size_t bytes = 0;
  for (auto _ : state) {
    CodeMap map({.max_table_bytes = std::size_t{256} << 20});
    if (!map.Refresh()) std::abort();
    bytes = map.statistics().table_bytes;
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(MakeAllTables)->Unit(benchmark::kMillisecond);

void LookForChanges(benchmark::State& state) {
  CodeMap& map = Map();
  for (auto _ : state) benchmark::DoNotOptimize(map.RefreshIfNeeded());
}
BENCHMARK(LookForChanges);

}  // namespace
}  // namespace spanprof::sampling

BENCHMARK_MAIN();
