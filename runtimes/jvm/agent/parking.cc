#include "agent/parking.h"

#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <string>
#include <string_view>

#include "agent/boot_caller.h"
#include "agent/hotspot_structs.h"
#include "agent/java_events.h"
#include "agent/jvmti_text.h"
#include "sampling/cpu_clock.h"
#include "sampling/safe_memory.h"

namespace spanprof::jvm {
namespace {

using sampling::MonotonicNanoseconds;
using ParkFunction = void(JNICALL*)(JNIEnv*, jobject, jboolean, jlong);

// Set once, before Park can be called.
struct Watch {
  ParkFunction original = nullptr;
  JavaEvents* events = nullptr;
  jvmtiEnv* jvmti = nullptr;
  jclass unsafe_class = nullptr;
  jclass thread_class = nullptr;
  jmethodID current_thread = nullptr;
  jfieldID park_blocker = nullptr;
};
Watch watch;
std::atomic<bool> is_watching{false};

constexpr std::string_view kLocks[] = {"Ljava/util/concurrent/locks/ReentrantLock",
                                       "Ljava/util/concurrent/locks/ReentrantReadWriteLock",
                                       "Ljava/util/concurrent/Semaphore"};

// Whether what the calling thread is about to wait for is a lock.
bool WaitsForLock(JNIEnv* jni) {
  const LocalReferences references(jni);
  const jobject thread = jni->CallStaticObjectMethod(watch.thread_class, watch.current_thread);
  if (thread == nullptr || jni->ExceptionCheck() == JNI_TRUE) return false;
  const jobject blocker = jni->GetObjectField(thread, watch.park_blocker);
  if (blocker == nullptr) return false;
  JvmtiText signature(watch.jvmti);
  if (watch.jvmti->GetClassSignature(jni->GetObjectClass(blocker), signature.out(), nullptr) !=
      JVMTI_ERROR_NONE) {
    return false;
  }
  for (const std::string_view lock : kLocks) {
    if (std::string_view(signature.get()).starts_with(lock)) return true;
  }
  return false;
}

void JNICALL Park(JNIEnv* jni, jobject unsafe, jboolean is_absolute, jlong time) {
  const bool is_lock = watch.events->RecordsLocks() && WaitsForLock(jni);
  const uint64_t began = is_lock ? MonotonicNanoseconds() : 0;
  watch.original(jni, unsafe, is_absolute, time);
  if (is_lock) watch.events->OnLockAcquired(watch.jvmti, MonotonicNanoseconds() - began);
}

void JNICALL BindPark(JNIEnv* jni, jclass) {
  char name[] = "park";
  char signature[] = "(ZJ)V";
  const JNINativeMethod method = {name, signature, reinterpret_cast<void*>(&Park)};
  is_watching.store(jni->RegisterNatives(watch.unsafe_class, &method, 1) == 0);
}

// Where the JVM keeps what a native method is bound to: behind its Method object.
ParkFunction BoundFunction(jmethodID method) {
  const auto tables = HotspotTables::OfThisProcess();
  if (!tables) return nullptr;
  const uint64_t method_bytes = tables->SizeOf("Method");
  uint64_t object = 0;
  uint64_t function = 0;
  if (method_bytes == 0 ||
      !sampling::CopyOwnMemory(reinterpret_cast<uintptr_t>(method), &object, sizeof object) ||
      !sampling::CopyOwnMemory(object + method_bytes, &function, sizeof function)) {
    return nullptr;
  }
  // It must be a function of the JVM itself; anything else is not what we take it for.
  Dl_info found = {};
  if (dladdr(reinterpret_cast<void*>(function), &found) == 0 || found.dli_fname == nullptr ||
      std::string_view(found.dli_fname).find("libjvm") == std::string_view::npos) {
    return nullptr;
  }
  return reinterpret_cast<ParkFunction>(function);
}

}  // namespace

Result<void> WatchParking(jvmtiEnv* jvmti, JNIEnv* jni, JavaEvents& events) {
  if (is_watching.load()) return {};
  const LocalReferences references(jni);
  const auto failed = [jni](const char* what) -> Result<void> {
    jni->ExceptionClear();
    return Fail(ENOTSUP,
                std::string("waits for locks of java.util.concurrent cannot be seen: ") + what,
                "waits for monitors (synchronized) are recorded all the same");
  };
  jclass unsafe = jni->FindClass("jdk/internal/misc/Unsafe");
  if (unsafe == nullptr) {
    jni->ExceptionClear();
    unsafe = jni->FindClass("sun/misc/Unsafe");
  }
  if (unsafe == nullptr) return failed("this JVM has no class Unsafe");
  const jmethodID park = jni->GetMethodID(unsafe, "park", "(ZJ)V");
  if (park == nullptr) return failed("its class Unsafe has no method park");
  const jclass thread = jni->FindClass("java/lang/Thread");
  watch.park_blocker = jni->GetFieldID(thread, "parkBlocker", "Ljava/lang/Object;");
  watch.current_thread = jni->GetStaticMethodID(thread, "currentThread", "()Ljava/lang/Thread;");
  if (watch.park_blocker == nullptr || watch.current_thread == nullptr) {
    return failed("its threads do not say what they wait for");
  }
  watch.original = BoundFunction(park);
  if (watch.original == nullptr) return failed("Unsafe.park is not where it is expected");
  watch.thread_class = static_cast<jclass>(jni->NewGlobalRef(thread));
  watch.events = &events;
  watch.jvmti = jvmti;
  watch.unsafe_class = unsafe;
  CallFromBootLoader(jni, &BindPark);
  return is_watching.load() ? Result<void>() : failed("Unsafe.park cannot be replaced");
}

}  // namespace spanprof::jvm
