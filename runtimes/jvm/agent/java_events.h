#pragma once

// What the JVM itself reports: allocations (a sample about every so many bytes) and waits for
// locks. Each comes on the thread that it happened on, with that thread's context.

#include <atomic>
#include <cstdint>
#include <jvmti.h>

#include "agent/java_methods.h"
#include "base/options.h"
#include "base/result.h"
#include "sampling/runtime.h"

namespace spanprof::jvm {

class JavaEvents {
 public:
  explicit JavaEvents(JavaMethods& methods) : methods_(methods) {}

  // On an attached thread.
  Result<void> Start(jvmtiEnv* jvmti, JNIEnv* jni, const Options& options,
                     sampling::RuntimeEvents& events);
  void Stop(jvmtiEnv* jvmti);

  [[nodiscard]] bool running() const { return events_.load() != nullptr; }

  // JVMTI's callbacks.
  void OnAllocation(jvmtiEnv* jvmti, jclass type, jlong bytes);
  void OnMonitorWait(JNIEnv* jni, jthread thread);
  void OnMonitorEntered(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread);
  // Around Unsafe.park.
  [[nodiscard]] bool RecordsLocks() const { return events_.load() != nullptr && records_locks_; }
  void OnLockAcquired(jvmtiEnv* jvmti, uint64_t waited_ns);

 private:
  // A virtual thread may go on elsewhere while it waits (from 24 on): its waits are not measured.
  [[nodiscard]] bool IsVirtual(JNIEnv* jni, jthread thread) const;
  void FindVirtualThreadClass(JNIEnv* jni);
  void Record(jvmtiEnv* jvmti, profile::SampleKind kind, uint64_t value, uint64_t first_frame);

  JavaMethods& methods_;
  std::atomic<jclass> virtual_thread_class_{nullptr};  // null: the JVM has none
  // Null while nothing is recorded.
  std::atomic<sampling::RuntimeEvents*> events_{nullptr};
  std::atomic<uint64_t> interval_bytes_{0};
  std::atomic<uint64_t> threshold_ns_{0};
  std::atomic<bool> records_locks_{false};
};

}  // namespace spanprof::jvm
