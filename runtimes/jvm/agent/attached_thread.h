#pragma once

// Makes the calling native thread one of the JVM's for a while, if it is not one already.

#include <jni.h>

namespace spanprof::jvm {

class AttachedThread {
 public:
  // As a daemon: the JVM does not wait for it at its end.
  AttachedThread(JavaVM* vm, const char* name) : vm_(vm) {
    void* environment = nullptr;
    if (vm->GetEnv(&environment, JNI_VERSION_1_6) == JNI_OK) {
      jni_ = static_cast<JNIEnv*>(environment);
      return;
    }
    char text[32] = {};
    for (unsigned i = 0; i + 1 < sizeof text && name[i] != '\0'; ++i) text[i] = name[i];
    JavaVMAttachArgs arguments = {JNI_VERSION_1_6, text, nullptr};
    attached_ = vm->AttachCurrentThreadAsDaemon(&environment, &arguments) == JNI_OK;
    if (attached_) jni_ = static_cast<JNIEnv*>(environment);
  }
  ~AttachedThread() {
    if (attached_) vm_->DetachCurrentThread();
  }
  AttachedThread(const AttachedThread&) = delete;
  AttachedThread& operator=(const AttachedThread&) = delete;

  // Null: the JVM is on its way out, or there is no memory.
  [[nodiscard]] JNIEnv* jni() const { return jni_; }

 private:
  JavaVM* vm_;
  JNIEnv* jni_ = nullptr;
  bool attached_ = false;
};

}  // namespace spanprof::jvm
