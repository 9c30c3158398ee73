#pragma once

// Texts between Java and C++, as UTF-8 in byte arrays: JNI's own string functions use another
// encoding, in which the text of a user may not be valid.

#include <jni.h>
#include <string>
#include <string_view>

namespace spanprof::jvm {

inline std::string BytesOf(JNIEnv* env, jbyteArray array) {
  if (array == nullptr) return {};
  const jsize length = env->GetArrayLength(array);
  std::string bytes(static_cast<size_t>(length), '\0');
  env->GetByteArrayRegion(array, 0, length, reinterpret_cast<jbyte*>(bytes.data()));
  return bytes;
}

// Null, and a pending OutOfMemoryError, where the heap is full.
inline jbyteArray ArrayOf(JNIEnv* env, std::string_view bytes) {
  const auto length = static_cast<jsize>(bytes.size());
  jbyteArray array = env->NewByteArray(length);
  if (array == nullptr) return nullptr;
  env->SetByteArrayRegion(array, 0, length, reinterpret_cast<const jbyte*>(bytes.data()));
  return array;
}

}  // namespace spanprof::jvm
