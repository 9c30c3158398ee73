#pragma once

// SIGNAL-SAFE. Walks the stack of a thread of the JVM by AsyncGetCallTrace, which HotSpot exports
// for that, though no document promises it. It gives the Java frames; the native ones above them
// and below are the native walker's.
//
// Its jmethodIDs are checked, where the VM's structures are known: who asks the JVM for the name of
// a word that is none takes the JVM down.
//
// It reads the VM's structures without asking whether they are there: on a thread that is at the
// wrong moment it can take the process down, and nothing here can prevent that. HotspotWalker does
// not; this one is for JVMs that HotspotWalker does not know.

#include <array>
#include <atomic>
#include <cstdint>
#include <jni.h>
#include <memory>
#include <ucontext.h>

#include "agent/hotspot_failures.h"
#include "agent/hotspot_memory.h"
#include "agent/hotspot_methods.h"
#include "agent/hotspot_structs.h"
#include "agent/java_thread_table.h"
#include "base/result.h"
#include "sampling/code_map.h"
#include "sampling/stack_walker.h"

namespace spanprof::jvm {

class AsgctWalker final : public sampling::StackWalker {
 public:
  // Fails where the JVM has no AsyncGetCallTrace. After VMInit. Both have to outlive it.
  static Result<std::unique_ptr<AsgctWalker>> Create(const sampling::CodeMap& code_map,
                                                     const JavaThreadTable& threads);

  [[nodiscard]] sampling::WalkedStack Walk(const ucontext_t& at, uint64_t stack_high, uint64_t* pcs,
                                           unsigned max_depth) const noexcept override;
  [[nodiscard]] const char* FailureName(uint8_t failure) const override {
    return NameOfFailure(failure);
  }

 private:
  // By HotSpot's forte.cpp.
  struct CallFrame {
    jint bytecode_index;
    jmethodID method;
  };
  struct CallTrace {
    JNIEnv* jni;
    jint count;  // of frames; 0 or less: why there are none
    CallFrame* frames;
  };
  using AsyncGetCallTrace = void (*)(CallTrace*, jint, void*);

  AsgctWalker(const sampling::CodeMap& code_map, const JavaThreadTable& threads)
      : code_map_(code_map), threads_(threads) {}

  [[nodiscard]] bool IsJavaCode(uint64_t pc) const noexcept { return pc - low_ < bytes_; }
  // Asks again from a frame further down, if the interrupted one is not to be walked.
  void Recover(CallTrace& trace, jint max, const ucontext_t& at, bool in_java,
               uint64_t stack_high) const noexcept;
  // Where the thread's first call into Java returns to: pc, stack pointer, frame pointer.
  [[nodiscard]] bool FindFirstCall(sampling::CodeMap::Reader& native, uint64_t stack_pointer,
                                   uint64_t stack_high, uint64_t (&registers)[3]) const noexcept;
  // Whether the id and its method lead to each other.
  [[nodiscard]] bool IsMethod(HotspotMemory& memory, uint64_t id) const noexcept;
  [[nodiscard]] bool RunsContinuation(uint64_t vm_thread) const noexcept;

  const sampling::CodeMap& code_map_;
  const JavaThreadTable& threads_;
  AsyncGetCallTrace get_call_trace_ = nullptr;
  // What the VM's tables say, if it has any.
  uint64_t low_ = 0;
  uint64_t bytes_ = 0;
  uint64_t call_stub_return_ = 0;
  HotspotField continuation_entry_;
  std::unique_ptr<const HotspotLayout> layout_;  // null: not known
  std::unique_ptr<HotspotMethods> methods_;
  // Ids that were checked. HotSpot never gives the memory of one to something else, up to 25.
  static constexpr unsigned kCheckedIds = 8192;
  mutable std::array<std::atomic<uint64_t>, kCheckedIds> checked_ids_{};
};

}  // namespace spanprof::jvm
