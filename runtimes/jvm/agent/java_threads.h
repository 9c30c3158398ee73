#pragma once

// The threads of the JVM: finds those that were there before us, and keeps the table for handlers
// and the names for samples as threads come and go.

#include <cstdint>
#include <jvmti.h>
#include <string>

#include "agent/java_thread_names.h"
#include "agent/java_thread_table.h"

namespace spanprof::jvm {

class JavaThreads {
 public:
  // On the thread that starts or ends.
  void OnStart(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread);
  void OnEnd(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread);
  // On a thread of the JVM that OnStart has seen: all the others.
  void FindAll(jvmtiEnv* jvmti, JNIEnv* jni, jthread current);

  [[nodiscard]] const JavaThreadTable& table() const { return table_; }
  JavaThreadNames& names() { return names_; }

 private:
  // The VM's own object, whose address the Thread object holds; 0: this JVM keeps it elsewhere.
  static uint64_t VmThreadOf(JNIEnv* jni, jthread thread);

  JavaThreadTable table_;
  JavaThreadNames names_;
};

}  // namespace spanprof::jvm
