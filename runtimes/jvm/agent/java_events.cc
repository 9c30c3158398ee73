#include "agent/java_events.h"

#include <cerrno>

#include "agent/hotspot_frame_word.h"
#include "agent/jvmti_text.h"
#include "agent/parking.h"
#include "base/log.h"
#include "sampling/cpu_clock.h"

namespace spanprof::jvm {
namespace {

using sampling::MonotonicNanoseconds;

constexpr int kMaxFrames = 512;

// When the calling thread began to wait for a monitor.
thread_local uint64_t wait_began_ns = 0;

// 1 - exp(-x) for what is not negative, to six digits; the library does without libm.
double ProbabilityToBeSeen(double x) {
  if (x > 20) return 1;
  constexpr int kHalvings = 8;
  const double small = x / (1 << kHalvings);
  double seen = small * (1 - small / 2 * (1 - small / 3 * (1 - small / 4)));
  // Of two halves: what is missed by both.
  for (int i = 0; i < kHalvings; ++i) seen *= 2 - seen;
  return seen;
}

Result<void> Able(jvmtiError error, const char* option, const char* what) {
  if (error == JVMTI_ERROR_NONE) return {};
  return Fail(ENOTSUP,
              std::string(option) + ": the JVM does not report " + what + " (JVMTI error " +
                  std::to_string(error) + ")",
              std::string("use JDK 11 or later, or leave ") + option + " out");
}

}  // namespace

Result<void> JavaEvents::Start(jvmtiEnv* jvmti, JNIEnv* jni, const Options& options,
                               sampling::RuntimeEvents& events) {
  events_.store(&events);
  if (options.allocation) {
    jvmtiCapabilities wanted = {};
    wanted.can_generate_sampled_object_alloc_events = 1;
    if (Result<void> able = Able(jvmti->AddCapabilities(&wanted), "alloc=", "allocations"); !able) {
      return able;
    }
    interval_bytes_.store(*options.allocation);
    jvmti->SetHeapSamplingInterval(static_cast<jint>(*options.allocation));
    jvmti->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, nullptr);
  }
  if (options.lock) {
    jvmtiCapabilities wanted = {};
    wanted.can_generate_monitor_events = 1;
    if (Result<void> able = Able(jvmti->AddCapabilities(&wanted), "lock=", "monitors"); !able) {
      return able;
    }
    FindVirtualThreadClass(jni);
    threshold_ns_.store(static_cast<uint64_t>(options.lock->count()));
    records_locks_.store(true);
    for (const jvmtiEvent event :
         {JVMTI_EVENT_MONITOR_CONTENDED_ENTER, JVMTI_EVENT_MONITOR_CONTENDED_ENTERED}) {
      jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr);
    }
    if (const Result<void> watched = WatchParking(jvmti, jni, *this); !watched) {
      LogWarning(options.log.value_or(kDefaultLog), TextOf(watched.error()));
    }
  }
  return {};
}

void JavaEvents::FindVirtualThreadClass(JNIEnv* jni) {
  if (virtual_thread_class_.load() != nullptr) return;
  const LocalReferences references(jni);
  const jclass type = jni->FindClass("java/lang/BaseVirtualThread");
  if (type == nullptr) {
    jni->ExceptionClear();  // before 19
  } else {
    virtual_thread_class_.store(static_cast<jclass>(jni->NewGlobalRef(type)));
  }
}

void JavaEvents::Stop(jvmtiEnv* jvmti) {
  for (const jvmtiEvent event :
       {JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, JVMTI_EVENT_MONITOR_CONTENDED_ENTER,
        JVMTI_EVENT_MONITOR_CONTENDED_ENTERED}) {
    jvmti->SetEventNotificationMode(JVMTI_DISABLE, event, nullptr);
  }
  records_locks_.store(false);
  events_.store(nullptr);
}

void JavaEvents::Record(jvmtiEnv* jvmti, profile::SampleKind kind, uint64_t value,
                        uint64_t first_frame) {
  sampling::RuntimeEvents* const events = events_.load(std::memory_order_acquire);
  if (events == nullptr) return;
  jvmtiFrameInfo frames[kMaxFrames];
  jint count = 0;
  if (jvmti->GetStackTrace(nullptr, 0, kMaxFrames, frames, &count) != JVMTI_ERROR_NONE) count = 0;
  uint64_t words[kMaxFrames + 1];
  unsigned depth = 0;
  if (first_frame != 0) words[depth++] = first_frame;
  for (int i = 0; i < count; ++i) {
    words[depth++] = JavaFrameWord(reinterpret_cast<uintptr_t>(frames[i].method),
                                   static_cast<int32_t>(frames[i].location));
  }
  sampling::RuntimeEvent event;
  event.kind = kind;
  event.state = kind == profile::SampleKind::kLock ? profile::ThreadState::kBlocked
                                                   : profile::ThreadState::kRunning;
  event.value = value;
  event.frames = words;
  event.depth = depth;
  events->RecordEvent(event);
}

void JavaEvents::OnAllocation(jvmtiEnv* jvmti, jclass type, jlong bytes) {
  JvmtiText signature(jvmti);
  if (jvmti->GetClassSignature(type, signature.out(), nullptr) != JVMTI_ERROR_NONE) return;
  // An object of this size is seen with this probability; a sample stands for those that are not.
  const auto interval = static_cast<double>(interval_bytes_.load(std::memory_order_relaxed));
  const auto size = static_cast<double>(bytes);
  const double seen = ProbabilityToBeSeen(size / interval);
  const double weight = seen > 0 ? size / seen : size;
  Record(jvmti, profile::SampleKind::kAllocation, static_cast<uint64_t>(weight),
         methods_.ClassFrame(signature.str()));
}

bool JavaEvents::IsVirtual(JNIEnv* jni, jthread thread) const {
  const jclass type = virtual_thread_class_.load(std::memory_order_acquire);
  return type != nullptr && jni->IsInstanceOf(thread, type) == JNI_TRUE;
}

void JavaEvents::OnMonitorWait(JNIEnv* jni, jthread thread) {
  if (!IsVirtual(jni, thread)) wait_began_ns = MonotonicNanoseconds();
}

void JavaEvents::OnMonitorEntered(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread) {
  if (IsVirtual(jni, thread)) return;
  const uint64_t began = wait_began_ns;
  wait_began_ns = 0;
  if (began != 0) OnLockAcquired(jvmti, MonotonicNanoseconds() - began);
}

void JavaEvents::OnLockAcquired(jvmtiEnv* jvmti, uint64_t waited_ns) {
  if (waited_ns < threshold_ns_.load(std::memory_order_relaxed)) return;
  Record(jvmti, profile::SampleKind::kLock, waited_ns, 0);
}

}  // namespace spanprof::jvm
