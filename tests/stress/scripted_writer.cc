#include "scripted_writer.h"

#include <string>
#include <unistd.h>

#include <sys/syscall.h>

#include <spanprof/context.hpp>

namespace spanprof::stress {

ScriptedWriter::ScriptedWriter(Progress& progress, uint32_t key) : progress_(progress), key_(key) {
  progress_.started.store(kCycle - 1, std::memory_order_relaxed);
  progress_.completed.store(kCycle - 1, std::memory_order_relaxed);
  progress_.key.store(key, std::memory_order_relaxed);
  // Release: who sees the tid sees the rest.
  progress_.tid.store(CurrentTid(), std::memory_order_release);
}

template <class Operation>
inline void ScriptedWriter::Step(Operation operation) {
  progress_.started.store(next_, std::memory_order_relaxed);
  // A handler that sees a field of this step sees that it was started. For other threads the
  // library's own release fence, behind its opening store, does it.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  operation();
  progress_.completed.store(next_, std::memory_order_release);
  ++next_;
}

void ScriptedWriter::RunCycle(unsigned extra_stack) {
  if (extra_stack != 0) {
    volatile char* pad = static_cast<volatile char*>(__builtin_alloca(extra_stack));
    pad[0] = 1;
  }
  Cycle();
}

[[gnu::noinline]] void ScriptedWriter::Cycle() {
  const uint64_t base = next_;
  const auto full = [this, base](unsigned at) { return FullFields(key_, base + at); };
  const auto state = [this, base](unsigned at) { return StateAt(key_, base + at); };
  Step([&, next = ToContext(key_, state(0))] { spanprof_context_update(&next); });
  Step([&, ids = full(1)] { spanprof_context_set(ids.span_id, ids.root_span_id); });
  Step([&, ids = full(2)] {
    spanprof_context_set_trace(ids.trace_id_high, ids.trace_id_low, ids.span_id, ids.root_span_id);
  });
  Step([&, text = TagText(key_, state(3).tag_classes[3])] {
    spanprof_context_set_tag(3, text.data(), text.size());
  });
  Step([&, id = ToContext(key_, state(4)).tags[8]] { spanprof_context_set_tag_id(8, id); });
  Step([&, in = ToContext(key_, state(5))] {
    spanprof_context out = {};
    out.size = sizeof out;
    spanprof_context_swap(&in, &out);
    if (!(FromContext(out) == state(4))) ++wrong_swaps_;
  });
  ScopesOfCycle(base);
  Step([] { spanprof_context_clear(); });
  Step([&, ids = full(14)] { spanprof::set(ids.span_id, ids.root_span_id); });
  Step([&, ids = full(15)] {
    spanprof::set(ids.trace_id_high, ids.trace_id_low, ids.span_id, ids.root_span_id);
  });
}

// A scope's destructor is a step too, so scopes are ended by hand.
void ScriptedWriter::ScopesOfCycle(uint64_t base) {
  union Storage {
    Storage() {}
    ~Storage() {}
    Scope scope;
  } first, second, third;
  Step([&, ids = FullFields(key_, base + 6)] {
    new (&first.scope) Scope(ids.span_id, ids.root_span_id);
  });
  Step([&, text = TagText(key_, StateAt(key_, base + 7).tag_classes[0])] {
    spanprof::set_tag(0, text);
  });
  Step([&] { first.scope.~Scope(); });
  Step([&, ids = FullFields(key_, base + 9)] {
    new (&second.scope) Scope(ids.trace_id_high, ids.trace_id_low, ids.span_id, ids.root_span_id);
  });
  Step(
      [&, next = ToContext(key_, FullFields(key_, base + 10))] { new (&third.scope) Scope(next); });
  Step([&] { third.scope.~Scope(); });
  Step([&] { second.scope.~Scope(); });
}

void ScriptedWriter::RunUntil(const std::atomic<bool>& stop) {
  for (unsigned i = 0; !stop.load(std::memory_order_relaxed); ++i) {
    RunCycle((i % 4) * 4096);
  }
}

int InitForStress(const char* storage, const char* more) {
  std::string options = "ctxstorage=";
  options += storage;
  options += ",attributes=a0;a1;a2;a3;a4;a5;a6;a7;a8;a9,log=none";
  options += more;
  const int result = spanprof_init(options.c_str());
  if (result == 0) InternTagTexts();
  return result;
}

int CurrentTid() { return static_cast<int>(syscall(SYS_gettid)); }

}  // namespace spanprof::stress
