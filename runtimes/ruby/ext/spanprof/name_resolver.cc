#include "name_resolver.h"

#include <algorithm>
#include <new>

#include "allocation_sampler.h"
#include "context/core_election.h"
#include "protected_call.h"
#include "sampling/cpu_clock.h"
#include "sampling/sampler.h"

namespace spanprof::ruby {
namespace {

using sampling::MonotonicNanoseconds;

constexpr uint64_t kMaxWaitNs = 5'000'000'000;
constexpr uint64_t kLookAgainNs = 100'000'000;
constexpr uint64_t kNamesIntervalNs = 1'000'000'000;
constexpr std::size_t kMaxThreadNames = 16384;

// Empty for what is no string.
std::string TextOf(VALUE value) {
  if (!RB_TYPE_P(value, T_STRING)) return "";
  return std::string(RSTRING_PTR(value), static_cast<std::size_t>(RSTRING_LEN(value)));
}

const FrameDescription* Describe(VALUE frame) {
  VALUE name = Qnil;
  VALUE path = Qnil;
  VALUE line = Qnil;
  ProtectQuietly([frame, &name, &path, &line] {
    // The class of an object that was allocated.
    if (RB_TYPE_P(frame, T_CLASS)) {
      name = rb_class_path(frame);
      return;
    }
    name = rb_profile_frame_full_label(frame);
    path = rb_profile_frame_absolute_path(frame);
    if (NIL_P(path)) path = rb_profile_frame_path(frame);
    line = rb_profile_frame_first_lineno(frame);
  });
  auto* description = new FrameDescription{TextOf(name), TextOf(path)};
  if (FIXNUM_P(line) && FIX2LONG(line) > 0) {
    description->first_line = static_cast<uint32_t>(FIX2LONG(line));
  }
  if (description->name.empty()) description->name = "[unnamed]";
  RB_GC_GUARD(name);
  RB_GC_GUARD(path);
  return description;
}

}  // namespace

void NameResolver::Start() {
  stop_.store(false, std::memory_order_relaxed);
  in_vain_.store(false, std::memory_order_relaxed);
  if (running_.exchange(true)) return;
  int raised = 0;
  Protect(
      [this] {
        const VALUE thread = rb_thread_create(&NameResolver::ThreadMain, this);
        rb_funcall(thread, rb_intern("name="), 1, rb_str_new_cstr("spanprof"));
        return Qnil;
      },
      &raised);
  if (raised == 0) return;
  running_.store(false);
  rb_jump_tag(raised);
}

void NameResolver::Stop() {
  stop_.store(true, std::memory_order_release);
  asked_.Increment();
}

void NameResolver::ForgetThreads() {
  const std::lock_guard<std::mutex> lock(names_lock_);
  thread_names_.clear();
}

VALUE NameResolver::ThreadMain(void* self) {
  // However it ends: the program may kill every thread that it finds.
  return rb_ensure(&NameResolver::Loop, reinterpret_cast<VALUE>(self), &NameResolver::Ended,
                   reinterpret_cast<VALUE>(self));
}

VALUE NameResolver::Loop(VALUE argument) {
  auto& self = *reinterpret_cast<NameResolver*>(argument);
  // Where another copy of the library samples, it takes us for a thread of the program.
  if (context::ActiveCore() == &context::ThisCoreInterface()) {
    sampling::Sampler::Instance().IgnoreCurrentThread();
  }
  AllocationSampler::IgnoreCurrentThread(true);
  while (!self.stop_.load(std::memory_order_acquire)) {
    self.interrupted_.store(false, std::memory_order_relaxed);
    rb_thread_call_without_gvl(&NameResolver::WaitForWork, &self, &NameResolver::StopWaiting,
                               &self);
    self.ResolveAll();
  }
  return Qnil;
}

// The native thread may get another Ruby thread.
VALUE NameResolver::Ended(VALUE argument) {
  sampling::Sampler::Instance().StopIgnoringCurrentThread();
  AllocationSampler::IgnoreCurrentThread(false);
  reinterpret_cast<NameResolver*>(argument)->running_.store(false);
  return Qnil;
}

void* NameResolver::WaitForWork(void* argument) {
  auto& self = *static_cast<NameResolver*>(argument);
  for (;;) {
    const uint32_t asked = self.asked_.Get();
    if (asked != self.answered_.load(std::memory_order_relaxed)) return nullptr;
    if (self.interrupted_.load(std::memory_order_acquire)) return nullptr;
    self.asked_.WaitWhile(asked, MonotonicNanoseconds() + 3'600'000'000'000u);
  }
}

// The VM wants the thread: to end it, or to handle a signal.
void NameResolver::StopWaiting(void* argument) {
  auto& self = *static_cast<NameResolver*>(argument);
  self.interrupted_.store(true, std::memory_order_release);
  self.asked_.Increment();
}

void NameResolver::ResolveAll() {
  answered_.store(asked_.Get(), std::memory_order_relaxed);
  frames_.Name(&Describe);
  threads_.Prune();
  NameThreads();
  in_vain_.store(false, std::memory_order_relaxed);
  rounds_.Increment();
}

void NameResolver::NameThreads() {
  static const ID kName = rb_intern("name");
  {
    // Names of threads that have ended are kept for a while; here begins a new one.
    const std::lock_guard<std::mutex> lock(names_lock_);
    if (thread_names_.size() > kMaxThreadNames) thread_names_.clear();
  }
  threads_.ForEach([this](const RubyThread& thread) {
    const VALUE object = thread.thread.load(std::memory_order_relaxed);
    VALUE name = Qnil;
    ProtectQuietly([object, &name] { name = rb_funcall(object, kName, 0); });
    const std::string text = TextOf(name);
    RB_GC_GUARD(name);
    const std::lock_guard<std::mutex> lock(names_lock_);
    // A name stays when its thread has ended: samples of it may be still to come.
    thread_names_[thread.tid.load(std::memory_order_relaxed)] = text;
  });
}

void NameResolver::Ask() { asked_.Increment(); }

const FrameDescription* NameResolver::Description(uint32_t number) {
  const uint64_t deadline = MonotonicNanoseconds() + kMaxWaitNs;
  for (;;) {
    const uint32_t seen = rounds_.Get();
    if (const FrameDescription* found = frames_.Description(number)) return found;
    const uint64_t now = MonotonicNanoseconds();
    if (now >= deadline) in_vain_.store(true, std::memory_order_relaxed);
    if (in_vain_.load(std::memory_order_relaxed)) {
      unnamed_.fetch_add(1, std::memory_order_relaxed);
      Ask();
      return nullptr;
    }
    Ask();
    rounds_.WaitWhile(seen, std::min(deadline, now + kLookAgainNs));
  }
}

std::string NameResolver::ThreadName(uint32_t tid, uint64_t monotonic_ns) {
  bool known = false;
  std::string name;
  {
    const std::lock_guard<std::mutex> lock(names_lock_);
    const auto found = thread_names_.find(tid);
    known = found != thread_names_.end();
    if (known) name = found->second;
  }
  const uint64_t interval = known ? kNamesIntervalNs : kLookAgainNs;
  if (monotonic_ns > last_names_ns_ + interval) {
    last_names_ns_ = monotonic_ns;
    Ask();
  }
  return name;
}

void NameResolver::FinishForkInChild() {
  new (&names_lock_) std::mutex();
  thread_names_.clear();
  running_.store(false);  // the thread is the parent's
  answered_.store(asked_.Get(), std::memory_order_relaxed);
}

void NameResolver::GiveUp() {
  in_vain_.store(true);
  rounds_.Increment();
}

}  // namespace spanprof::ruby
