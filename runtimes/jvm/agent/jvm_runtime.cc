#include "agent/jvm_runtime.h"

#include <cerrno>

#include "agent/jvmti_text.h"
#include "agent/virtual_threads.h"
#include "base/log.h"

namespace spanprof::jvm {
namespace {

std::string SystemProperty(jvmtiEnv* jvmti, const char* name) {
  JvmtiText value(jvmti);
  if (jvmti->GetSystemProperty(name, value.out()) != JVMTI_ERROR_NONE) return "";
  return value.str();
}

// Of a class that every JVM has.
uint64_t AnyMethod(JNIEnv* jni) {
  const LocalReferences references(jni);
  const jclass object = jni->FindClass("java/lang/Object");
  return reinterpret_cast<uintptr_t>(jni->GetMethodID(object, "hashCode", "()I"));
}

}  // namespace

Result<void> JvmRuntime::Prepare(const Options& options, const sampling::CodeMap& native_code) {
  if (options.virtual_threads.value_or(false)) {
    const AttachedThread thread(vm_, "spanprof-rec");
    if (Result<void> followed = VirtualThreads::Follow(vm_); !followed) return followed;
  }
  Result<void> chosen =
      ChooseWalker(options.java_walker.value_or(JavaWalker::kHotspot), native_code);
  if (chosen || options.java_walker) return chosen;
  // Nobody asked for this one.
  const Error why = chosen.error();
  chosen = ChooseWalker(JavaWalker::kAsgct, native_code);
  if (chosen) {
    LogWarning(options.log.value_or(kDefaultLog),
               "AsyncGetCallTrace walks the stacks: " + TextOf(why));
  }
  return chosen;
}

Result<void> JvmRuntime::ChooseWalker(JavaWalker wanted, const sampling::CodeMap& native_code) {
  // Kept from recording to recording: handlers of the last one may still be in it.
  if (wanted == JavaWalker::kHotspot) {
    if (hotspot_walker_ == nullptr) {
      const AttachedThread thread(vm_, "spanprof-rec");
      if (thread.jni() == nullptr) return Fail(ESRCH, "the JVM is about to end");
      auto walker = HotspotWalker::Create(native_code, threads_.table(), AnyMethod(thread.jni()));
      if (!walker) return tl::make_unexpected(walker.error());
      hotspot_walker_ = *std::move(walker);
      // Where they cannot be read, a stack ends with a marker that says so.
      (void)hotspot_walker_->ReadFrozenFrames(thread.jni());
      thread_state_.emplace(hotspot_walker_->layout(), threads_.table());
    }
    walker_ = hotspot_walker_.get();
    return {};
  }
  if (asgct_walker_ == nullptr) {
    auto walker = AsgctWalker::Create(native_code, threads_.table());
    if (!walker) return tl::make_unexpected(walker.error());
    asgct_walker_ = *std::move(walker);
  }
  walker_ = asgct_walker_.get();
  return {};
}

Result<void> JvmRuntime::StartEvents(const Options& options, sampling::RuntimeEvents& events) {
  if (!options.allocation && !options.lock) return {};
  const AttachedThread thread(vm_, "spanprof-rec");
  if (thread.jni() == nullptr) return Fail(ESRCH, "the JVM is about to end");
  Result<void> started = events_.Start(jvmti_, thread.jni(), options, events);
  if (!started) events_.Stop(jvmti_);
  return started;
}

void JvmRuntime::StopEvents() {
  if (!events_.running()) return;
  const AttachedThread thread(vm_, "spanprof-rec");
  if (thread.jni() != nullptr) events_.Stop(jvmti_);
}

void JvmRuntime::EnterSamplerThread() { sampler_thread_.emplace(vm_, "spanprof"); }

void JvmRuntime::LeaveSamplerThread() { sampler_thread_.reset(); }

sampling::RuntimeFrame JvmRuntime::Describe(uint64_t frame) {
  JNIEnv* const jni = sampler_thread_ ? sampler_thread_->jni() : nullptr;
  if (jni != nullptr) return methods_.Describe(jvmti_, jni, frame);
  sampling::RuntimeFrame nameless;
  nameless.name = "[the JVM has ended]";
  return nameless;
}

std::string JvmRuntime::ThreadName(uint32_t tid, uint64_t monotonic_ns, const char* os_name) {
  JNIEnv* const jni = sampler_thread_ ? sampler_thread_->jni() : nullptr;
  if (jni == nullptr) return os_name;
  return threads_.names().Find(jvmti_, jni, tid, monotonic_ns, os_name);
}

std::map<std::string, uint64_t> JvmRuntime::counters() const {
  return {{"jvm.attached_late", late_ ? 1 : 0},
          {"jvm.method_ids", methods_.ids()},
          {"jvm.classes_without_method_ids", methods_.refused_ids()},
          {"jvm.methods_unknown", methods_.unknown()},
          {"jvm.methods_unloaded", methods_.unloaded()},
          {"jvm.threads_over_limit", threads_.table().refused()},
          {"jvm.virtual_thread_contexts_refused", VirtualThreads::refused_contexts()}};
}

std::vector<ResourceAttribute> JvmRuntime::resource() const { return resource_; }

void JvmRuntime::CatchUp(JNIEnv* jni, jthread current, bool late) {
  late_ = late;
  threads_.FindAll(jvmti_, jni, current);
  resource_ = {{"telemetry.sdk.language", "java"},
               {"process.runtime.name", SystemProperty(jvmti_, "java.runtime.name")},
               {"process.runtime.version", SystemProperty(jvmti_, "java.runtime.version")}};
  jint count = 0;
  JvmtiMemory<jclass> classes(jvmti_);
  if (jvmti_->GetLoadedClasses(&count, classes.out()) == JVMTI_ERROR_NONE) {
    for (int i = 0; i < count; ++i) {
      methods_.MakeIds(jvmti_, classes[i]);
      jni->DeleteLocalRef(classes[i]);
    }
  }
}

}  // namespace spanprof::jvm
