#pragma once

// The agent in a JVM: one a process, however it came in (-agentpath, an attach, System.load).

#include <atomic>
#include <jni.h>
#include <jvmti.h>
#include <mutex>
#include <string>

#include "base/result.h"

namespace spanprof::jvm {

class JvmRuntime;

class Agent {
 public:
  static Agent& Instance();

  // Takes hold of the JVM. More than once is fine. `vm_is_running`: false in -agentpath, where the
  // rest waits for the JVM to be ready.
  Result<void> Enter(JavaVM* vm, bool vm_is_running);

  // "start,cpu=1ms,...", "stop", "dump,file=...", "status"; returns what to tell the user. Before
  // the JVM is ready: looks whether it can be understood, and does it then.
  Result<std::string> Execute(const std::string& command);

 private:
  friend struct AgentCallbacks;

  Agent() = default;
  Result<void> TakeCapabilities();
  void EnableEvents();
  void OnReady(JNIEnv* jni, jthread current);
  void CatchUp(JNIEnv* jni, jthread current, bool late);
  Result<std::string> ExecuteNow(const std::string& command);
  [[nodiscard]] std::string Status() const;

  std::mutex lock_;
  jvmtiEnv* jvmti_ = nullptr;
  JvmRuntime* runtime_ = nullptr;  // never freed: a handler or a callback may use it to the end
  bool another_serves_ = false;    // another copy of this library has the JVM
  std::atomic<bool> ready_{false};
  std::string to_do_;  // once the JVM is ready
};

}  // namespace spanprof::jvm
