#include "agent/boot_caller.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace spanprof::jvm {
namespace {

constexpr const char* kClassName = "io/spanprof/agent/BootCaller";

// The class file of
//   package io.spanprof.agent;
//   final class BootCaller {
//     static native void act();
//     static void call() { act(); }
//   }
class ClassFile {
 public:
  [[nodiscard]] std::string Write() {
    U4(0xCAFEBABE);
    U4(49);                                  // Java 5: any JVM reads it, and it needs no stack map
    U2(11);                                  // constants, and one
    Text(kClassName);                        // 1
    Reference(kClass, kOwnName);             // 2
    Text("java/lang/Object");                // 3
    Reference(kClass, 3);                    // 4
    Text("act");                             // 5
    Text("()V");                             // 6
    Pair(kNameAndType, kAct, kNoArguments);  // 7
    Pair(kMethod, kOwnClass, 7);             // 8
    Text("call");                            // 9
    Text("Code");                            // 10
    U2(0x0030);                              // final super
    U2(kOwnClass);
    U2(4);
    U2(0);       // interfaces
    U2(0);       // fields
    U2(2);       // methods
    U2(0x0108);  // static native
    U2(kAct);
    U2(kNoArguments);
    U2(0);
    U2(0x0008);  // static
    U2(9);
    U2(kNoArguments);
    U2(1);
    U2(10);
    U4(16);
    U2(0);  // stack
    U2(0);  // locals
    U4(4);
    bytes_ += std::string("\xB8\x00\x08\xB1", 4);  // invokestatic 8, return
    U2(0);
    U2(0);
    U2(0);  // attributes of the class
    return bytes_;
  }

 private:
  static constexpr uint8_t kClass = 7, kMethod = 10, kNameAndType = 12;
  static constexpr uint16_t kOwnName = 1, kOwnClass = 2, kAct = 5, kNoArguments = 6;

  void U1(uint8_t value) { bytes_ += static_cast<char>(value); }
  void U2(uint16_t value) {
    U1(static_cast<uint8_t>(value >> 8));
    U1(static_cast<uint8_t>(value));
  }
  void U4(uint32_t value) {
    U2(static_cast<uint16_t>(value >> 16));
    U2(static_cast<uint16_t>(value));
  }
  void Text(std::string_view text) {
    U1(1);
    U2(static_cast<uint16_t>(text.size()));
    bytes_ += text;
  }
  void Reference(uint8_t kind, uint16_t index) {
    U1(kind);
    U2(index);
  }
  void Pair(uint8_t kind, uint16_t first, uint16_t second) {
    Reference(kind, first);
    U2(second);
  }

  std::string bytes_;
};

}  // namespace

bool CallFromBootLoader(JNIEnv* jni, NativeAction action) {
  const std::string bytes = ClassFile().Write();
  jclass caller =
      jni->DefineClass(kClassName, nullptr, reinterpret_cast<const jbyte*>(bytes.data()),
                       static_cast<jsize>(bytes.size()));
  if (caller == nullptr) {
    // It is there from an earlier time.
    jni->ExceptionClear();
    caller = jni->FindClass(kClassName);
    if (caller == nullptr) return false;
  }
  char name[] = "act";
  char signature[] = "()V";
  const JNINativeMethod method = {name, signature, reinterpret_cast<void*>(action)};
  if (jni->RegisterNatives(caller, &method, 1) != 0) return false;
  const jmethodID call = jni->GetStaticMethodID(caller, "call", "()V");
  if (call == nullptr) return false;
  jni->CallStaticVoidMethod(caller, call);
  return jni->ExceptionCheck() == JNI_FALSE;
}

}  // namespace spanprof::jvm
