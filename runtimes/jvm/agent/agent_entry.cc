// Where the JVM comes in.

#include <string>
#include <string_view>

#include "agent/agent.h"
#include "agent/attach_answer.h"
#include "base/log.h"

namespace {

using spanprof::LogWarning;
using spanprof::Result;
using spanprof::TextOf;
using spanprof::jvm::Agent;
using spanprof::jvm::AttachAnswer;

Result<std::string> Do(JavaVM* vm, std::string_view options, bool vm_is_running) {
  if (Result<void> entered = Agent::Instance().Enter(vm, vm_is_running); !entered) {
    return tl::make_unexpected(entered.error());
  }
  if (options.empty()) return std::string();
  return Agent::Instance().Execute(std::string(options));
}

}  // namespace

extern "C" {

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* options, void*) {
  const auto done = Do(vm, options == nullptr ? "" : options, false);
  // A profiler that cannot work is no reason not to start the program.
  if (!done) LogWarning(spanprof::kDefaultLog, TextOf(done.error()));
  return JNI_OK;
}

// Also for an agent that is there already: this is how it is told something.
JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM* vm, char* options, void*) {
  std::string_view words = options == nullptr ? "" : options;
  Result<AttachAnswer> answer = AttachAnswer::Take(words);
  if (!answer) {
    LogWarning(spanprof::kDefaultLog, TextOf(answer.error()));
    return JNI_ERR;
  }
  const auto done = Do(vm, words, true);
  answer->Write(done);
  if (!done && !answer->is_awaited()) LogWarning(spanprof::kDefaultLog, TextOf(done.error()));
  return JNI_OK;
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  (void)Agent::Instance().Enter(vm, true);
  return JNI_VERSION_1_8;
}
}
