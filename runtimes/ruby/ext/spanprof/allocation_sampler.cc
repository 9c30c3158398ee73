#include "allocation_sampler.h"

#include <bit>
#include <cmath>

#include "frame_word.h"

// Of Ruby 3.2 and newer, exported and in no header. Before it every object had a place of one size.
extern "C" __attribute__((weak)) size_t
rb_gc_obj_slot_size(VALUE object);  // NOLINT(readability-identifier-naming): Ruby's

namespace spanprof::ruby {
namespace {

constexpr uint64_t kOnlySlotSize = 5 * sizeof(VALUE);
constexpr unsigned kMaxFrames = 512;

thread_local bool is_ignored = false;

// What programs do not see: method entries, nodes of the parser, scopes.
bool IsInternal(VALUE object) {
  switch (RB_BUILTIN_TYPE(object)) {
    case T_NONE:
    case T_IMEMO:
    case T_NODE:
    case T_ICLASS:
    case T_ZOMBIE:
    case T_MOVED:
      return true;
    default:
      return RBASIC_CLASS(object) == 0;
  }
}

}  // namespace

// What a TracePoint object has the VM do, without the object: one step less for every new one.
void AllocationSampler::FollowRecording() {
  const bool asked = events_.load(std::memory_order_acquire) != nullptr;
  const bool wanted = asked && !has_ractors_;
  if (asked && has_ractors_) ended_by_ractors_.fetch_add(1, std::memory_order_relaxed);
  if (wanted == has_hook_) return;
  // The VM's own type of such a hook is another one.
  const auto hook = std::bit_cast<rb_event_hook_func_t>(&AllocationSampler::OnNewObject);
  // The collector marks it: as a number it is left alone.
  const VALUE self = reinterpret_cast<VALUE>(this) | RUBY_FIXNUM_FLAG;
  if (wanted) {
    rb_add_event_hook2(hook, RUBY_INTERNAL_EVENT_NEWOBJ, self,
                       static_cast<rb_event_hook_flag_t>(RUBY_EVENT_HOOK_FLAG_SAFE |
                                                         RUBY_EVENT_HOOK_FLAG_RAW_ARG));
  } else {
    rb_remove_event_hook_with_data(hook, self);
  }
  has_hook_ = wanted;
}

void AllocationSampler::ExpectRactors() {
  if (has_ractors_) return;
  has_ractors_ = true;
  FollowRecording();
}

void AllocationSampler::Start(uint64_t interval_bytes, RubyWalker& walker,
                              sampling::RuntimeEvents& events) {
  interval_.store(interval_bytes, std::memory_order_relaxed);
  walker_.store(&walker, std::memory_order_relaxed);
  remaining_.store(NextDistance(), std::memory_order_relaxed);
  events_.store(&events, std::memory_order_release);  // pairs with Reached's load
}

void AllocationSampler::IgnoreCurrentThread(bool ignored) { is_ignored = ignored; }

// In the middle of an allocation: nothing of Ruby's may be allocated here, and nothing may raise.
// For every object, so it does no more than to count.
void AllocationSampler::OnNewObject(VALUE argument, rb_trace_arg_t* event) {
  auto& self = *reinterpret_cast<AllocationSampler*>(argument & ~VALUE{RUBY_FIXNUM_FLAG});
  VALUE object = 0;
  uint64_t bytes = kOnlySlotSize;
  if (rb_gc_obj_slot_size != nullptr) {
    object = rb_tracearg_object(event);
    bytes = rb_gc_obj_slot_size(object);
  }
  const int64_t remaining =
      self.remaining_.load(std::memory_order_relaxed) - static_cast<int64_t>(bytes);
  self.remaining_.store(remaining, std::memory_order_relaxed);
  if (remaining <= 0) self.Reached(object != 0 ? object : rb_tracearg_object(event), bytes);
}

void AllocationSampler::Reached(VALUE object, uint64_t bytes) {
  remaining_.store(NextDistance(), std::memory_order_relaxed);
  sampling::RuntimeEvents* const events = events_.load(std::memory_order_acquire);
  if (events != nullptr && !is_ignored) TakeSample(object, bytes, *events);
}

void AllocationSampler::TakeSample(VALUE object, uint64_t bytes, sampling::RuntimeEvents& events) {
  uint64_t words[kMaxFrames];
  // What was allocated stands above who allocated it.
  if (IsInternal(object)) {
    words[0] = FrameWord(FrameNote::kInternal);
  } else {
    const uint32_t number = frames_.Intern(rb_class_real(RBASIC_CLASS(object)));
    words[0] =
        number == FrameTable::kFull ? FrameWord(FrameNote::kTableFull) : FrameWord(number, 0);
  }
  const sampling::WalkedStack stack =
      walker_.load(std::memory_order_relaxed)->WalkHere(words + 1, kMaxFrames - 1);
  // An object of this size is seen with this probability; a sample stands for those that are not.
  const auto interval = static_cast<double>(interval_.load(std::memory_order_relaxed));
  const auto size = static_cast<double>(bytes);
  sampling::RuntimeEvent event;
  event.kind = profile::SampleKind::kAllocation;
  event.value = static_cast<uint64_t>(size / -std::expm1(-size / interval));
  event.frames = words;
  event.depth = 1 + stack.depth;
  if (!events.RecordEvent(event)) dropped_.fetch_add(1, std::memory_order_relaxed);
}

// Exponentially distributed: every byte is as likely as any other to be the one that is sampled.
int64_t AllocationSampler::NextDistance() {
  uint64_t random = random_.load(std::memory_order_relaxed);  // xorshift64
  random ^= random << 13;
  random ^= random >> 7;
  random ^= random << 17;
  random_.store(random, std::memory_order_relaxed);
  const double uniform = (static_cast<double>(random >> 11) + 1) * 0x1p-53;  // in (0, 1]
  const auto interval = static_cast<double>(interval_.load(std::memory_order_relaxed));
  return static_cast<int64_t>(-std::log(uniform) * interval);
}

}  // namespace spanprof::ruby
