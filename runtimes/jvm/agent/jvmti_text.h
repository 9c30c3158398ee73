#pragma once

// Memory that JVMTI gives out, given back.

#include <jvmti.h>
#include <string>

namespace spanprof::jvm {

template <class T>
class JvmtiMemory {
 public:
  explicit JvmtiMemory(jvmtiEnv* jvmti) : jvmti_(jvmti) {}
  ~JvmtiMemory() {
    if (memory_ != nullptr) jvmti_->Deallocate(reinterpret_cast<unsigned char*>(memory_));
  }
  JvmtiMemory(const JvmtiMemory&) = delete;
  JvmtiMemory& operator=(const JvmtiMemory&) = delete;

  // For the call that fills it, once.
  T** out() { return &memory_; }
  T* get() const { return memory_; }
  T& operator[](int index) const { return memory_[index]; }

 private:
  jvmtiEnv* jvmti_;
  T* memory_ = nullptr;
};

class JvmtiText : public JvmtiMemory<char> {
 public:
  using JvmtiMemory<char>::JvmtiMemory;
  [[nodiscard]] std::string str() const { return get() == nullptr ? std::string() : get(); }
};

// Local references that a native thread's calls make are freed only when it says so.
class LocalReferences {
 public:
  explicit LocalReferences(JNIEnv* jni) : jni_(jni), framed_(jni->PushLocalFrame(16) == 0) {}
  ~LocalReferences() {
    if (framed_) jni_->PopLocalFrame(nullptr);
  }
  LocalReferences(const LocalReferences&) = delete;
  LocalReferences& operator=(const LocalReferences&) = delete;

 private:
  JNIEnv* jni_;
  bool framed_;
};

}  // namespace spanprof::jvm
