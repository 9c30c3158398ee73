#pragma once

// The JVM as the core's sampler sees it: its walker, the names of its methods and threads, its
// events.

#include <atomic>
#include <jvmti.h>
#include <memory>
#include <optional>

#include "agent/asgct_walker.h"
#include "agent/attached_thread.h"
#include "agent/hotspot_thread_state.h"
#include "agent/hotspot_walker.h"
#include "agent/java_events.h"
#include "agent/java_methods.h"
#include "agent/java_threads.h"
#include "sampling/runtime.h"

namespace spanprof::jvm {

class JvmRuntime final : public sampling::Runtime {
 public:
  JvmRuntime(JavaVM* vm, jvmtiEnv* jvmti) : vm_(vm), jvmti_(jvmti) {}

  const sampling::StackWalker& walker() const override { return *walker_; }
  profile::ThreadState CurrentThreadState() const override {
    return thread_state_ ? thread_state_->OfThisThread() : profile::ThreadState::kUnknown;
  }
  Result<void> Prepare(const Options& options, const sampling::CodeMap& native_code) override;
  Result<void> StartEvents(const Options& options, sampling::RuntimeEvents& events) override;
  void StopEvents() override;
  void EnterSamplerThread() override;
  void LeaveSamplerThread() override;
  sampling::RuntimeFrame Describe(uint64_t frame) override;
  std::string ThreadName(uint32_t tid, uint64_t monotonic_ns, const char* os_name) override;
  std::map<std::string, uint64_t> counters() const override;
  std::vector<ResourceAttribute> resource() const override;

  // For JVMTI's callbacks.
  JavaMethods& methods() { return methods_; }
  JavaEvents& events() { return events_; }
  JavaThreads& threads() { return threads_; }
  // Once, when the JVM can be asked: what was there before us. `late`: it ran its program already.
  void CatchUp(JNIEnv* jni, jthread current, bool late);

 private:
  Result<void> ChooseWalker(JavaWalker wanted, const sampling::CodeMap& native_code);

  JavaVM* const vm_;
  jvmtiEnv* const jvmti_;
  JavaMethods methods_;
  JavaThreads threads_;
  JavaEvents events_{methods_};
  std::unique_ptr<HotspotWalker> hotspot_walker_;
  std::unique_ptr<AsgctWalker> asgct_walker_;
  std::optional<HotspotThreadState> thread_state_;
  const sampling::StackWalker* walker_ = nullptr;
  std::optional<AttachedThread> sampler_thread_;
  std::vector<ResourceAttribute> resource_;
  bool late_ = false;
};

}  // namespace spanprof::jvm
