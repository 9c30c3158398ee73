#include "ruby_runtime.h"

#include <cerrno>
#include <pthread.h>

#include <ruby/version.h>

#include "context/platform.h"
#include "frame_word.h"
#include "gvl_waits.h"

namespace spanprof::ruby {
namespace {

const char* NameOf(FrameNote note) {
  switch (note) {
    case FrameNote::kCollecting:
      return "[GC]";
    case FrameNote::kCompiled:
      return "[code of the JIT]";
    case FrameNote::kWaitsForLock:
      return "[waiting for the GVL]";
    case FrameNote::kInternal:
      return "[object of the VM]";
    case FrameNote::kTableFull:
      break;
  }
  return "[frame table is full]";
}

}  // namespace

// The object that the garbage collector asks.
struct RuntimeObject {
  static void Mark(void* self) {
    static_cast<RubyRuntime*>(self)->frames_.Mark();
    static_cast<RubyRuntime*>(self)->threads_.Mark();
  }
  static void Update(void* self) { static_cast<RubyRuntime*>(self)->frames_.Update(); }
  static const rb_data_type_t kType;
};

const rb_data_type_t RuntimeObject::kType = {
    "Spanprof::Runtime",
    {&RuntimeObject::Mark, nullptr, nullptr, &RuntimeObject::Update, {nullptr}},
    nullptr,
    nullptr,
    0,
};

RubyRuntime& RubyRuntime::Instance() {
  static RubyRuntime* const kRuntime = new RubyRuntime();
  return *kRuntime;
}

void RubyRuntime::Install() {
  static VALUE object = TypedData_Wrap_Struct(rb_cObject, &RuntimeObject::kType, this);
  rb_gc_register_address(&object);
  interpreter_ = FindInterpreter();
  resource_ = {{"telemetry.sdk.language", "ruby"},
               {"process.runtime.name", "ruby"},
               {"process.runtime.version", ruby_version}};
  WatchForks();
  MakeCollectorHook();
  GvlWaits::Install(threads_);
  contexts_.Install();
  ruby_vm_at_exit([](ruby_vm_t*) { Instance().resolver_.GiveUp(); });
}

void RubyRuntime::MakeCollectorHook() {
  collector_hook_ = rb_tracepoint_new(
      Qnil,
      RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_END_MARK | RUBY_INTERNAL_EVENT_GC_EXIT,
      &RubyRuntime::OnCollection, this);
  rb_gc_register_address(&collector_hook_);
}

void RubyRuntime::ExpectCompaction(bool begins) {
  compactions_ += begins ? 1 : -1;
  FollowCompaction();
}

void RubyRuntime::ExpectAutomaticCompaction(bool on) {
  automatic_compaction_ = on;
  FollowCompaction();
}

void RubyRuntime::ExpectRactors() {
  has_ractors_ = true;
  FollowCompaction();
  allocations_.ExpectRactors();
}

void RubyRuntime::FollowCompaction() {
  const bool may_move = compactions_ > 0 || automatic_compaction_;
  // Before a hook is needed, and until it is not.
  if (may_move || has_ractors_) gate_.SetMayMove(true);
  const bool wanted = may_move && !has_ractors_;
  const bool enabled = RTEST(rb_tracepoint_enabled_p(collector_hook_));
  if (wanted && !enabled) rb_tracepoint_enable(collector_hook_);
  if (!wanted && enabled) rb_tracepoint_disable(collector_hook_);
  if (!may_move && !has_ractors_) gate_.SetMayMove(false);
}

// In the collector: nothing may be allocated here.
void RubyRuntime::OnCollection(VALUE tracepoint, void* argument) {
  auto& self = *static_cast<RubyRuntime*>(argument);
  switch (rb_tracearg_event_flag(rb_tracearg_from_tracepoint(tracepoint))) {
    case RUBY_INTERNAL_EVENT_GC_ENTER:
      self.OnCollectionStep();
      break;
    case RUBY_INTERNAL_EVENT_GC_END_MARK:
      if (self.walker_ready_.load(std::memory_order_acquire)) {
        self.walker_->KeepCollectorsStack(self.sampling_.load(std::memory_order_relaxed));
      }
      self.gate_.OnMarked();
      break;
    default:
      self.gate_.OnStepEnd();
  }
}

void RubyRuntime::OnCollectionStep() {
  const RubyThread* const thread = contexts_.Own(rb_thread_current());
  if (thread == nullptr) {
    gate_.OnStepBegin(context::CurrentThreadId(), false);
    return;
  }
  const VALUE owner = thread->fiber.load(std::memory_order_relaxed);
  gate_.OnStepBegin(thread->tid.load(std::memory_order_relaxed),
                    owner == kUnknownFiber || (owner != 0 && owner == rb_fiber_current()));
}

// Before those of the recording, which begins anew in the child and will ask for its threads.
void RubyRuntime::WatchForks() {
  pthread_atfork(
      [] {
        Instance().forking_tid_ = context::CurrentThreadId();
        Instance().resolver_.PrepareFork();
      },
      [] { Instance().resolver_.FinishForkInParent(); },
      [] {
        RubyRuntime& self = Instance();
        self.gate_.OnForkInChild();
        self.threads_.OnForkInChild(self.forking_tid_, context::CurrentThreadId());
        self.resolver_.FinishForkInChild();
      });
}

profile::ThreadState RubyRuntime::CurrentThreadState() const {
  const RubyThread* const thread = threads_.Find(context::CurrentThreadId());
  if (thread == nullptr || thread->ended.load(std::memory_order_acquire)) {
    return profile::ThreadState::kUnknown;
  }
  switch (thread->lock_state.load(std::memory_order_relaxed)) {
    case LockState::kHas:
      return profile::ThreadState::kRunning;
    case LockState::kWaits:
      return profile::ThreadState::kBlocked;
    case LockState::kWithout:
      return profile::ThreadState::kWaiting;
    case LockState::kUnknown:
      break;
  }
  // Threads that sleep say that they have it, too; when they go on sleeping they are seen to.
  return ruby_thread_has_gvl_p() != 0 ? profile::ThreadState::kRunning
                                      : profile::ThreadState::kWaiting;
}

uint64_t RubyRuntime::StateMark(uint32_t tid) const {
  const RubyThread* const thread = threads_.Find(tid);
  return thread == nullptr ? 0 : thread->state_changes.load(std::memory_order_acquire);
}

Result<void> RubyRuntime::Prepare(const Options& options, const sampling::CodeMap& native_code) {
  if (options.lock) {
    return Fail(ENOTSUP, "lock= is not there for Ruby",
                "leave it out; wall= shows who waits for the VM's lock");
  }
  GvlWaits::StartCounting();
  const CounterValues counts = AllCounts();
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    counts_at_start_[i].store(counts[i], std::memory_order_relaxed);
  }
  // Kept from recording to recording: handlers of the last one may still be in it.
  if (walker_ == nullptr) {
    walker_ = std::make_unique<RubyWalker>(native_code, interpreter_, threads_, frames_, gate_,
                                           traits_, walker_counters_);
    walker_ready_.store(true, std::memory_order_release);
  }
  sampling_.store(true, std::memory_order_relaxed);
  return {};
}

Result<void> RubyRuntime::StartEvents(const Options& options, sampling::RuntimeEvents& events) {
  if (options.allocation) allocations_.Start(*options.allocation, *walker_, events);
  return {};
}

void RubyRuntime::StopEvents() {
  sampling_.store(false, std::memory_order_relaxed);
  allocations_.Stop();
}

sampling::RuntimeFrame RubyRuntime::Describe(uint64_t word) {
  sampling::RuntimeFrame frame;
  const uint32_t number = FrameNumberOf(word);
  if (number >= kFirstNote) {
    frame.name = NameOf(FrameNote{number});
    return frame;
  }
  const FrameDescription* const description = resolver_.Description(number);
  if (description == nullptr) {
    frame.name = "[Ruby could not be asked for the name]";
    return frame;
  }
  frame.kind = profile::FrameKind::kRuby;
  frame.name = description->name;
  frame.file = description->file;
  frame.line = FrameLineOf(word) != 0 ? FrameLineOf(word) : description->first_line;
  return frame;
}

std::string RubyRuntime::ThreadName(uint32_t tid, uint64_t monotonic_ns, const char* os_name) {
  std::string name = resolver_.ThreadName(tid, monotonic_ns);
  return name.empty() ? os_name : name;
}

RubyRuntime::CounterValues RubyRuntime::AllCounts() const {
  return {walker_counters_.switching,
          walker_counters_.between_threads,
          walker_counters_.collecting,
          walker_counters_.in_jit_code,
          walker_counters_.around_collections,
          walker_counters_.while_moving,
          allocations_.dropped(),
          allocations_.ended_by_ractors(),
          GvlWaits::count(),
          GvlWaits::nanoseconds(),
          frames_.refused(),
          resolver_.unnamed(),
          threads_.refused()};
}

std::map<std::string, uint64_t> RubyRuntime::counters() const {
  static constexpr std::array<const char*, kCounterCount> kNames = {
      "ruby.context_switching",   "ruby.between_threads",
      "ruby.gc_samples",          "ruby.in_jit_code",
      "ruby.around_collections",  "ruby.while_objects_moved",
      "ruby.allocations_dropped", "ruby.allocations_ended_by_ractors",
      "ruby.gvl_waits",           "ruby.gvl_wait_ns",
      "ruby.frames_over_limit",   "ruby.frames_without_name",
      "ruby.threads_over_limit"};
  const CounterValues now = AllCounts();
  std::map<std::string, uint64_t> result;
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    result[kNames[i]] = now[i] - counts_at_start_[i].load(std::memory_order_relaxed);
  }
  return result;
}

}  // namespace spanprof::ruby
