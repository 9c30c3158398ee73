// What a context call costs, beside the floor, an empty call, clock_gettime and a gettid system
// call. Run by ./dev bench context, once for each storage mode.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/syscall.h>

#include "floor.h"
#include <spanprof/context.hpp>

namespace {

// A new pair of ids each time, as cheap as a tracer could make them.
struct Ids {
  uint64_t span = 0x1234567890abcdef;
  uint64_t root = 0xfedcba0987654321;
  void Next() {
    span += 0x9E3779B97F4A7C15u;
    root += 0xC2B2AE3D27D4EB4Fu;
  }
};

void BM_EmptyCall(benchmark::State& state) {
  Ids ids;
  for (auto _ : state) {
    ids.Next();
    floor_empty(ids.span, ids.root);
  }
}

void BM_Floor(benchmark::State& state) {
  floor_prepare_thread();
  Ids ids;
  for (auto _ : state) {
    ids.Next();
    floor_four_stores(ids.span, ids.root);
  }
}

void BM_BareStoresInline(benchmark::State& state) {
  alignas(64) volatile uint64_t words[8];
  Ids ids;
  for (auto _ : state) {
    ids.Next();
    words[0] = ids.span;
    words[1] = ids.root;
    words[2] = ids.span;
    words[3] = ids.root;
  }
  benchmark::DoNotOptimize(words[0]);
}

void BM_Set(benchmark::State& state) {
  Ids ids;
  for (auto _ : state) {
    ids.Next();
    spanprof_context_set(ids.span, ids.root);
  }
}

void BM_SetSameRoot(benchmark::State& state) {
  Ids ids;
  for (auto _ : state) {
    ids.Next();
    spanprof_context_set(ids.span, 77);
  }
}

void BM_SetInline(benchmark::State& state) {
  Ids ids;
  for (auto _ : state) {
    ids.Next();
    spanprof::set(ids.span, ids.root);
  }
}

void BM_SetTrace(benchmark::State& state) {
  Ids ids;
  for (auto _ : state) {
    ids.Next();
    spanprof_context_set_trace(ids.root, ids.span, ids.span, ids.root);
  }
  spanprof_context_clear();
}

void BM_SetTagById(benchmark::State& state) {
  const uint32_t values[2] = {spanprof_intern("/cart", 5), spanprof_intern("/checkout", 9)};
  unsigned i = 0;
  spanprof_context_set(1, 2);
  for (auto _ : state) spanprof_context_set_tag_id(0, values[i++ & 1]);
  spanprof_context_clear();
}

void BM_SetTagByString(benchmark::State& state) {
  spanprof_context_set(1, 2);
  unsigned i = 0;
  for (auto _ : state) {
    if ((i++ & 1) != 0) {
      spanprof_context_set_tag(0, "/cart", 5);
    } else {
      spanprof_context_set_tag(0, "/checkout", 9);
    }
  }
  spanprof_context_clear();
}

void BM_UpdateIdsAndThreeTags(benchmark::State& state) {
  spanprof_context context = {sizeof(spanprof_context), 1, 0, 0, 0, 0, {}};
  const uint32_t routes[2] = {spanprof_intern("/cart", 5), spanprof_intern("/checkout", 9)};
  context.tags[1] = spanprof_intern("tenant-1", 8);
  context.tags[2] = spanprof_intern("GET", 3);
  Ids ids;
  unsigned i = 0;
  for (auto _ : state) {
    ids.Next();
    context.trace_id_high = ids.root;
    context.trace_id_low = ids.span;
    context.span_id = ids.span;
    context.root_span_id = ids.root;
    context.tags[0] = routes[i++ & 1];
    spanprof_context_update(&context);
  }
  spanprof_context_clear();
}

void BM_Scope(benchmark::State& state) {
  Ids ids;
  spanprof_context_set(1, 2);
  for (auto _ : state) {
    ids.Next();
    const spanprof::Scope scope(ids.span, ids.root);
    benchmark::ClobberMemory();
  }
  spanprof_context_clear();
}

void BM_Clear(benchmark::State& state) {
  for (auto _ : state) spanprof_context_clear();
}

void BM_Get(benchmark::State& state) {
  spanprof_context context = {sizeof(spanprof_context), 0, 0, 0, 0, 0, {}};
  spanprof_context_set(1, 2);
  for (auto _ : state) {
    spanprof_context_get(&context);
    benchmark::DoNotOptimize(context);
  }
  spanprof_context_clear();
}

void BM_GetByTid(benchmark::State& state) {
  spanprof_context context = {sizeof(spanprof_context), 0, 0, 0, 0, 0, {}};
  spanprof_context_set(1, 2);
  const int tid = static_cast<int>(syscall(SYS_gettid));
  for (auto _ : state) {
    spanprof_context_get_by_tid(tid, &context);
    benchmark::DoNotOptimize(context);
  }
  spanprof_context_clear();
}

void BM_ClockGettime(benchmark::State& state) {
  timespec now = {};
  for (auto _ : state) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    benchmark::DoNotOptimize(now);
  }
}

void BM_GettidSystemCall(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(syscall(SYS_gettid));
}

// Two threads whose slots share a cache line, or do not: 32-byte slots stand two to a line, and the
// header makes an odd tid and the even one after it neighbours.
class ThreadPair {
 public:
  explicit ThreadPair(bool neighbours) {
    for (;;) {
      threads_.push_back(std::make_unique<Worker>());
      for (const auto& other : threads_) {
        const unsigned low = std::min(other->tid(), threads_.back()->tid());
        const unsigned high = std::max(other->tid(), threads_.back()->tid());
        const bool share = high == low + 1 && low % 2 == 1;
        if (neighbours ? share : high >= low + 8) {
          first_ = other.get();
          second_ = threads_.back().get();
          return;
        }
      }
    }
  }

  // Both set contexts at the same time; the time of one set.
  double NanosecondsPerSet(uint64_t sets) {
    first_->Start(sets);
    second_->Start(sets);
    return std::max(first_->Wait(), second_->Wait()) / static_cast<double>(sets);
  }

 private:
  class Worker {
   public:
    Worker() : thread_([this] { Run(); }) {
      while (tid_.load() == 0) std::this_thread::yield();
    }
    ~Worker() {
      stop_ = true;
      thread_.join();
    }
    unsigned tid() const { return tid_; }
    void Start(uint64_t sets) { sets_ = sets; }
    double Wait() {
      while (sets_ != 0) {
      }
      return nanoseconds_;
    }

   private:
    void Run() {
      spanprof_context_set(1, 1);
      tid_ = static_cast<unsigned>(syscall(SYS_gettid));
      while (!stop_) {
        const uint64_t sets = sets_;
        if (sets == 0) {
          std::this_thread::yield();
          continue;
        }
        Ids ids;
        timespec start = {}, end = {};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
        for (uint64_t i = 0; i < sets; ++i) {
          ids.Next();
          spanprof_context_set(ids.span, ids.root);
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        nanoseconds_ = static_cast<double>(end.tv_sec - start.tv_sec) * 1e9 +
                       static_cast<double>(end.tv_nsec - start.tv_nsec);
        sets_ = 0;
      }
    }
    std::atomic<unsigned> tid_{0};
    std::atomic<uint64_t> sets_{0};
    std::atomic<bool> stop_{false};
    std::atomic<double> nanoseconds_{0};
    std::thread thread_;
  };

  std::vector<std::unique_ptr<Worker>> threads_;
  Worker* first_ = nullptr;
  Worker* second_ = nullptr;
};

void MeasurePair(benchmark::State& state, bool neighbours) {
  ThreadPair pair(neighbours);
  constexpr uint64_t kSets = 200000;
  for (auto _ : state) {
    // One iteration is one set, so that the row reads like the others.
    state.SetIterationTime(pair.NanosecondsPerSet(kSets) * 1e-9);
  }
}

void BM_SetNeighbours(benchmark::State& state) { MeasurePair(state, true); }
void BM_SetApart(benchmark::State& state) { MeasurePair(state, false); }

using Body = void (*)(benchmark::State&);

void Register(const char* name, Body body, int threads) {
  benchmark::RegisterBenchmark(name, body)->Threads(threads)->UseRealTime()->MinTime(0.05);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const char* mode = argc > 1 ? argv[1] : "profiler";
  if (strcmp(mode, "none") != 0) {
    const std::string options =
        std::string("ctxstorage=") + mode + ",attributes=route;tenant;method";
    if (spanprof_init(options.c_str()) != 0) {
      fprintf(stderr, "spanprof_init: %s\n", spanprof_error());
      return 1;
    }
  }
  for (const int threads : {1, 2}) {
    Register("empty_call", BM_EmptyCall, threads);
    Register("floor", BM_Floor, threads);
    Register("bare_stores_inline", BM_BareStoresInline, threads);
    Register("set", BM_Set, threads);
    if (strcmp(mode, "none") == 0) continue;
    Register("set_same_root", BM_SetSameRoot, threads);
    Register("set_inline", BM_SetInline, threads);
    Register("set_trace", BM_SetTrace, threads);
    Register("set_tag_by_id", BM_SetTagById, threads);
    Register("set_tag_by_string", BM_SetTagByString, threads);
    Register("update_ids_and_three_tags", BM_UpdateIdsAndThreeTags, threads);
    Register("scope_enter_and_exit", BM_Scope, threads);
    Register("clear", BM_Clear, threads);
    Register("get", BM_Get, threads);
    if (spanprof_is_otel_mode() != 0) Register("get_by_tid", BM_GetByTid, threads);
    Register("clock_gettime", BM_ClockGettime, threads);
    Register("gettid_system_call", BM_GettidSystemCall, threads);
  }
  if (spanprof_is_otel_mode() != 0) {
    benchmark::RegisterBenchmark("set_in_neighbouring_slots", BM_SetNeighbours)
        ->UseManualTime()
        ->Iterations(20);
    benchmark::RegisterBenchmark("set_in_slots_apart", BM_SetApart)
        ->UseManualTime()
        ->Iterations(20);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
