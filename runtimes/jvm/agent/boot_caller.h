#pragma once

// Calls a native function from Java code of the boot loader. The JVM writes a warning to the
// program's output when a native method of its own is bound anew by anybody else, and an agent's
// own output has no business there.

#include <jni.h>

namespace spanprof::jvm {

using NativeAction = void(JNICALL*)(JNIEnv* jni, jclass);

// False: the class could not be made; an exception may be pending.
bool CallFromBootLoader(JNIEnv* jni, NativeAction action);

}  // namespace spanprof::jvm
