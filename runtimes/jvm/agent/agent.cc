#include "agent/agent.h"

#include <cerrno>

#include "agent/jvm_runtime.h"
#include "base/log.h"
#include "base/options.h"
#include "context/core_election.h"
#include "context/core_interface.h"
#include <spanprof/context.h>

namespace spanprof::jvm {

// JVMTI's callbacks, each on the thread that it is about.
struct AgentCallbacks {
  static void JNICALL OnVmInit(jvmtiEnv*, JNIEnv* jni, jthread thread) {
    Agent& agent = Agent::Instance();
    agent.OnReady(jni, thread);
  }
  // While the JVM still knows the names of things.
  static void JNICALL OnVmDeath(jvmtiEnv*, JNIEnv*) {
    if (const auto* core = context::ActiveCore()) core->profiler().finish_before_exit();
  }
  static void JNICALL OnThreadStart(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread) {
    Agent::Instance().runtime_->threads().OnStart(jvmti, jni, thread);
  }
  static void JNICALL OnThreadEnd(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread) {
    Agent::Instance().runtime_->threads().OnEnd(jvmti, jni, thread);
  }
  // Nothing to do, but without it AsyncGetCallTrace finds no classes.
  static void JNICALL OnClassLoad(jvmtiEnv*, JNIEnv*, jthread, jclass) {}
  static void JNICALL OnClassPrepare(jvmtiEnv* jvmti, JNIEnv*, jthread, jclass type) {
    Agent::Instance().runtime_->methods().MakeIds(jvmti, type);
  }
  // Nothing to do, but for its sake the compilers keep debug information everywhere.
  static void JNICALL OnCompiledMethod(jvmtiEnv*, jmethodID, jint, const void*, jint,
                                       const jvmtiAddrLocationMap*, const void*) {}
  static void JNICALL OnAllocation(jvmtiEnv* jvmti, JNIEnv*, jthread, jobject, jclass type,
                                   jlong bytes) {
    Agent::Instance().runtime_->events().OnAllocation(jvmti, type, bytes);
  }
  static void JNICALL OnMonitorWait(jvmtiEnv*, JNIEnv* jni, jthread thread, jobject) {
    Agent::Instance().runtime_->events().OnMonitorWait(jni, thread);
  }
  static void JNICALL OnMonitorEntered(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread, jobject) {
    Agent::Instance().runtime_->events().OnMonitorEntered(jvmti, jni, thread);
  }
};

Agent& Agent::Instance() {
  static Agent* const kAgent = new Agent();
  return *kAgent;
}

Result<void> Agent::Enter(JavaVM* vm, bool vm_is_running) {
  const std::lock_guard<std::mutex> lock(lock_);
  if (runtime_ != nullptr || another_serves_) return {};
  void* jvmti = nullptr;
  if (vm->GetEnv(&jvmti, JVMTI_VERSION_1_2) != JNI_OK) {
    return Fail(ENOTSUP, "this JVM has no tool interface (JVMTI)", "use a HotSpot JVM");
  }
  jvmti_ = static_cast<jvmtiEnv*>(jvmti);
  auto* const runtime = new JvmRuntime(vm, jvmti_);
  const auto core = context::ElectCore();
  if (!core) return tl::make_unexpected(core.error());
  if (const int refused = (*core)->profiler().use_runtime(*runtime); refused != 0) {
    delete runtime;
    if (refused == -EEXIST) {
      // -agentpath has brought one copy, and the Java library another.
      another_serves_ = true;
      ready_.store(true);
      return {};
    }
    return Fail(EBUSY, "the process is being recorded already, as a native program",
                "stop that recording, and attach again");
  }
  if (Result<void> able = TakeCapabilities(); !able) return able;
  runtime_ = runtime;
  EnableEvents();
  if (!vm_is_running) return {};
  void* jni = nullptr;
  jthread current = nullptr;
  if (vm->GetEnv(&jni, JNI_VERSION_1_6) == JNI_OK &&
      jvmti_->GetCurrentThread(&current) == JVMTI_ERROR_NONE) {
    CatchUp(static_cast<JNIEnv*>(jni), current, true);
  }
  ready_.store(true);
  return {};
}

Result<void> Agent::TakeCapabilities() {
  jvmtiCapabilities wanted = {};
  wanted.can_get_source_file_name = 1;
  wanted.can_get_line_numbers = 1;
  wanted.can_generate_compiled_method_load_events = 1;
  if (const jvmtiError error = jvmti_->AddCapabilities(&wanted); error != JVMTI_ERROR_NONE) {
    return Fail(ENOTSUP, "the JVM refuses what a profiler needs (JVMTI error " +
                             std::to_string(error) + ")");
  }
  return {};
}

void Agent::EnableEvents() {
  jvmtiEventCallbacks callbacks = {};
  callbacks.VMInit = &AgentCallbacks::OnVmInit;
  callbacks.VMDeath = &AgentCallbacks::OnVmDeath;
  callbacks.ThreadStart = &AgentCallbacks::OnThreadStart;
  callbacks.ThreadEnd = &AgentCallbacks::OnThreadEnd;
  callbacks.ClassLoad = &AgentCallbacks::OnClassLoad;
  callbacks.ClassPrepare = &AgentCallbacks::OnClassPrepare;
  callbacks.CompiledMethodLoad = &AgentCallbacks::OnCompiledMethod;
  callbacks.SampledObjectAlloc = &AgentCallbacks::OnAllocation;
  callbacks.MonitorContendedEnter = &AgentCallbacks::OnMonitorWait;
  callbacks.MonitorContendedEntered = &AgentCallbacks::OnMonitorEntered;
  jvmti_->SetEventCallbacks(&callbacks, sizeof callbacks);
  for (const jvmtiEvent event :
       {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH, JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END,
        JVMTI_EVENT_CLASS_LOAD, JVMTI_EVENT_CLASS_PREPARE, JVMTI_EVENT_COMPILED_METHOD_LOAD}) {
    jvmti_->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr);
  }
}

void Agent::CatchUp(JNIEnv* jni, jthread current, bool late) {
  runtime_->threads().OnStart(jvmti_, jni, current);
  runtime_->CatchUp(jni, current, late);
}

void Agent::OnReady(JNIEnv* jni, jthread current) {
  CatchUp(jni, current, false);
  std::string command;
  {
    const std::lock_guard<std::mutex> lock(lock_);
    ready_.store(true);
    command.swap(to_do_);
  }
  if (command.empty()) return;
  if (const auto done = ExecuteNow(command); !done) {
    LogWarning(kDefaultLog, "nothing is recorded: " + TextOf(done.error()));
  }
}

Result<std::string> Agent::Execute(const std::string& command) {
  {
    const std::lock_guard<std::mutex> lock(lock_);
    if (runtime_ == nullptr && !another_serves_) {
      return Fail(ENODEV, "the agent has no JVM to work in", "see its first message");
    }
    if (!ready_.load()) {
      if (const auto options = ParseOptions(command); !options) {
        return tl::make_unexpected(options.error());
      }
      to_do_ = command;
      return std::string("to be done when the JVM is ready");
    }
  }
  return ExecuteNow(command);
}

Result<std::string> Agent::ExecuteNow(const std::string& command) {
  const Result<Options> options = ParseOptions(command);
  if (!options) return tl::make_unexpected(options.error());
  const auto answer = [](int result, const std::string& text) -> Result<std::string> {
    if (result < 0) return Fail(-result, spanprof_error());
    return text;
  };
  switch (options->command) {
    case Command::kNone:
      return answer(spanprof_init(command.c_str()), "initialised");
    case Command::kStart:
      return answer(spanprof_start(command.c_str()), "started");
    case Command::kStop:
      return answer(spanprof_stop(), "stopped");
    case Command::kDump:
      if (!options->file) {
        return Fail(EINVAL, "dump needs a file", "say which, e.g. dump,file=profile.jfr");
      }
      return answer(spanprof_dump(options->file->c_str()), "written to " + *options->file);
    case Command::kStatus:
      return Status();
  }
  return std::string();
}

std::string Agent::Status() const {
  const context::CoreInterface* core = context::ActiveCore();
  const bool recording = core != nullptr && core->profiler().is_running() != 0;
  std::string text = recording ? "recording" : "not recording";
  if (spanprof_is_initialized() != 0) {
    text += std::string("\nctxstorage=") + (spanprof_is_otel_mode() != 0 ? "otel" : "profiler");
  }
  for (unsigned i = 0; spanprof_counter_name(i) != nullptr; ++i) {
    if (const uint64_t value = spanprof_counter_value(i); value != 0) {
      text += std::string("\ncontext.") + spanprof_counter_name(i) + "=" + std::to_string(value);
    }
  }
  if (runtime_ == nullptr) return text;
  for (const auto& [name, value] : runtime_->counters()) {
    if (value != 0) text += "\n" + name + "=" + std::to_string(value);
  }
  return text;
}

}  // namespace spanprof::jvm
