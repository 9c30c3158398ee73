#include "agent/java_threads.h"

#include "agent/hotspot_structs.h"
#include "agent/jvmti_text.h"
#include "context/platform.h"
#include "sampling/safe_memory.h"

namespace spanprof::jvm {
namespace {

template <class T>
bool Load(uint64_t address, T& value) {
  return sampling::CopyOwnMemory(address, &value, sizeof value);
}

// The kernel's id of a thread that is not the calling one; 0: not known.
uint32_t KernelIdOf(const HotspotTables& tables, uint64_t vm_thread) {
  const HotspotField os_thread = tables.Field("JavaThread", "_osthread").present()
                                     ? tables.Field("JavaThread", "_osthread")
                                     : tables.Field("Thread", "_osthread");
  const HotspotField id = tables.Field("OSThread", "_thread_id");
  uint64_t object = 0;
  uint32_t tid = 0;
  if (vm_thread == 0 || !os_thread.present() || !id.present() ||
      !Load(vm_thread + os_thread.offset, object) || object == 0 ||
      !Load(object + id.offset, tid)) {
    return 0;
  }
  return tid;
}

}  // namespace

uint64_t JavaThreads::VmThreadOf(JNIEnv* jni, jthread thread) {
  static const jfieldID kField = [jni] {
    const LocalReferences references(jni);
    const jfieldID field = jni->GetFieldID(jni->FindClass("java/lang/Thread"), "eetop", "J");
    if (field == nullptr) jni->ExceptionClear();
    return field;
  }();
  return kField == nullptr ? 0 : static_cast<uint64_t>(jni->GetLongField(thread, kField));
}

void JavaThreads::OnStart(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread) {
  table_.Add(context::CurrentThreadId(), {.jni = jni, .vm_thread = VmThreadOf(jni, thread)});
  names_.OnStart(jvmti, jni, thread);
}

void JavaThreads::OnEnd(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread) {
  table_.Remove(context::CurrentThreadId());
  names_.OnEnd(jvmti, jni, thread);
}

void JavaThreads::FindAll(jvmtiEnv* jvmti, JNIEnv* jni, jthread current) {
  const uint64_t own_vm_thread = VmThreadOf(jni, current);
  const auto tables = HotspotTables::OfThisProcess();
  jint count = 0;
  JvmtiMemory<jthread> threads(jvmti);
  if (own_vm_thread == 0 || !tables ||
      jvmti->GetAllThreads(&count, threads.out()) != JVMTI_ERROR_NONE) {
    return;
  }
  // In every thread's object the JNI environment lies at the same place.
  const uint64_t environment = reinterpret_cast<uintptr_t>(jni) - own_vm_thread;
  for (int i = 0; i < count; ++i) {
    const uint64_t vm_thread = VmThreadOf(jni, threads[i]);
    const uint32_t tid = KernelIdOf(*tables, vm_thread);
    if (tid != 0 && vm_thread != own_vm_thread) {
      table_.Add(
          tid, {.jni = reinterpret_cast<JNIEnv*>(vm_thread + environment), .vm_thread = vm_thread});
      names_.Add(jvmti, jni, threads[i], tid);
    }
    jni->DeleteLocalRef(threads[i]);
  }
}

}  // namespace spanprof::jvm
