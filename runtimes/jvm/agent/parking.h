#pragma once

// Waits for the locks of java.util.concurrent: a thread that cannot have one is parked, by the
// native method Unsafe.park. Ours takes its place, and calls it.
//
// Only locks with an owner count (ReentrantLock, ReentrantReadWriteLock, Semaphore). A thread that
// waits for work is parked too, and waits for no lock.

#include <jvmti.h>

#include "base/result.h"

namespace spanprof::jvm {

class JavaEvents;

// Once; later calls find it done.
Result<void> WatchParking(jvmtiEnv* jvmti, JNIEnv* jni, JavaEvents& events);

}  // namespace spanprof::jvm
