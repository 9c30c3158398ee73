#include "agent/virtual_threads.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "agent/jvmti_text.h"
#include <spanprof/context.h>

namespace spanprof::jvm {
namespace {

std::atomic<bool> is_following{false};
std::atomic<uint64_t> kept{0};
std::atomic<uint64_t> refused{0};

// Of threads that wait with a span, which are requests in flight.
constexpr uint64_t kMaxKept = 1 << 20;

bool IsEmpty(const spanprof_context& context) {
  uint64_t any = context.trace_id_high | context.trace_id_low | context.span_id |
                 context.root_span_id | context.trace_flags;
  for (const uint32_t tag : context.tags) any |= tag;
  return any == 0;
}

// Of one virtual thread, from its first unmounting with a context to its end.
struct Kept {
  spanprof_context context;
  bool is_mounted;  // the context is the carrier's, not this one
};

// The JVM keeps the pointer for us with the thread; null is "the current one".
Kept* Stored(jvmtiEnv* jvmti, jthread thread) {
  void* stored = nullptr;
  if (jvmti->GetThreadLocalStorage(thread, &stored) != JVMTI_ERROR_NONE) return nullptr;
  return static_cast<Kept*>(stored);
}

Kept* Store(jvmtiEnv* jvmti) {
  if (kept.fetch_add(1, std::memory_order_relaxed) < kMaxKept) {
    auto* const memory = static_cast<Kept*>(std::calloc(1, sizeof(Kept)));
    if (memory != nullptr) {
      if (jvmti->SetThreadLocalStorage(nullptr, memory) == JVMTI_ERROR_NONE) return memory;
      std::free(memory);
    }
  }
  kept.fetch_sub(1, std::memory_order_relaxed);
  refused.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

void JNICALL OnMount(jvmtiEnv* jvmti, ...) {
  Kept* const own = Stored(jvmti, nullptr);
  if (own == nullptr || own->is_mounted) return;
  spanprof_context_swap(&own->context, nullptr);
  own->is_mounted = true;
}

void JNICALL OnUnmount(jvmtiEnv* jvmti, ...) {
  spanprof_context current = {};
  current.size = sizeof current;
  spanprof_context_swap(nullptr, &current);
  Kept* own = Stored(jvmti, nullptr);
  if (own == nullptr) {
    if (IsEmpty(current)) return;
    own = Store(jvmti);
    if (own == nullptr) return;
  }
  own->context = current;
  own->is_mounted = false;
}

// Behind its last unmounting.
void JNICALL OnEnd(jvmtiEnv* jvmti, JNIEnv*, jthread thread) {
  Kept* const own = Stored(jvmti, thread);
  if (own == nullptr) return;
  jvmti->SetThreadLocalStorage(thread, nullptr);
  std::free(own);
  kept.fetch_sub(1, std::memory_order_relaxed);
}

// The events of virtual threads came with 21, behind the last that the headers of 17 know.
constexpr auto kVirtualThreadEnd = static_cast<jvmtiEvent>(88);
struct CallbacksOf21 {
  jvmtiEventCallbacks older;
  void(JNICALL* virtual_thread_start)(jvmtiEnv*, JNIEnv*, jthread);
  void(JNICALL* virtual_thread_end)(jvmtiEnv*, JNIEnv*, jthread);
};

Result<void> TakeCapability(jvmtiEnv* jvmti) {
  // can_support_virtual_threads came with 21; it is the bit behind this one of 11.
  jvmtiCapabilities wanted = {};
  wanted.can_generate_sampled_object_alloc_events = 1;
  unsigned char bytes[sizeof wanted];
  std::memcpy(bytes, &wanted, sizeof bytes);
  unsigned bit = 0;
  while ((bytes[bit / 8] & (1u << (bit % 8))) == 0) ++bit;
  bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] & ~(1u << (bit % 8)));
  ++bit;
  bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] | (1u << (bit % 8)));
  std::memcpy(&wanted, bytes, sizeof bytes);
  const jvmtiError error = jvmti->AddCapabilities(&wanted);
  if (error == JVMTI_ERROR_NONE) return {};
  return Fail(ENOTSUP, "vthreads=on: this JVM has no virtual threads, or does not tell of them",
              "use JDK 21 or later, or leave the option out");
}

}  // namespace

bool VirtualThreads::following() { return is_following.load(std::memory_order_relaxed); }
uint64_t VirtualThreads::kept_contexts() { return kept.load(std::memory_order_relaxed); }
uint64_t VirtualThreads::refused_contexts() { return refused.load(std::memory_order_relaxed); }

Result<void> VirtualThreads::Follow(JavaVM* vm) {
  if (following()) return {};
  // An environment of its own: callbacks and thread-local storage are one each in an environment.
  void* environment = nullptr;
  if (vm->GetEnv(&environment, JVMTI_VERSION_1_2) != JNI_OK) {
    return Fail(ENOTSUP, "this JVM has no tool interface (JVMTI)", "use a HotSpot JVM");
  }
  auto* const jvmti = static_cast<jvmtiEnv*>(environment);
  if (Result<void> able = TakeCapability(jvmti); !able) return able;
  jint count = 0;
  JvmtiMemory<jvmtiExtensionEventInfo> events(jvmti);
  if (jvmti->GetExtensionEvents(&count, events.out()) != JVMTI_ERROR_NONE) count = 0;
  int followed = 0;
  for (int i = 0; i < count; ++i) {
    const jvmtiExtensionEventInfo& event = events[i];
    const std::string_view id = event.id;
    const bool mount = id == "com.sun.hotspot.events.VirtualThreadMount";
    if (mount || id == "com.sun.hotspot.events.VirtualThreadUnmount") {
      const auto type = static_cast<jvmtiEvent>(event.extension_event_index);
      if (jvmti->SetExtensionEventCallback(event.extension_event_index,
                                           mount ? &OnMount : &OnUnmount) == JVMTI_ERROR_NONE &&
          jvmti->SetEventNotificationMode(JVMTI_ENABLE, type, nullptr) == JVMTI_ERROR_NONE) {
        ++followed;
      }
    }
    jvmti->Deallocate(reinterpret_cast<unsigned char*>(event.id));
    jvmti->Deallocate(reinterpret_cast<unsigned char*>(event.short_description));
    for (int p = 0; p < event.param_count; ++p) {
      jvmti->Deallocate(reinterpret_cast<unsigned char*>(event.params[p].name));
    }
    jvmti->Deallocate(reinterpret_cast<unsigned char*>(event.params));
  }
  CallbacksOf21 callbacks = {};
  callbacks.virtual_thread_end = &OnEnd;
  if (jvmti->SetEventCallbacks(&callbacks.older, sizeof callbacks) == JVMTI_ERROR_NONE &&
      jvmti->SetEventNotificationMode(JVMTI_ENABLE, kVirtualThreadEnd, nullptr) ==
          JVMTI_ERROR_NONE) {
    ++followed;
  }
  if (followed != 3) {
    return Fail(ENOTSUP, "vthreads=on: this JVM does not tell when virtual threads are mounted",
                "use a HotSpot JVM of 21 or later");
  }
  is_following.store(true, std::memory_order_relaxed);
  return {};
}

}  // namespace spanprof::jvm
