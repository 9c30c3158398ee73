#pragma once

// What Java frames are called: class, method, file and line, by JVMTI. And the making of
// jmethodIDs, which a handler needs and cannot make.
//
// HotSpot never reuses a jmethodID, and knows one of an unloaded class when it sees it. So a name
// that was found stays right, and one that was asked for too late is "<unloaded>". But anything
// else that it takes for a jmethodID brings it down, and a walker may have misread one: so only
// those that the JVM itself gave us are ever given back to it.

#include <atomic>
#include <cstdint>
#include <jvmti.h>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tsl/robin_set.h>

#include "sampling/runtime.h"

namespace spanprof::jvm {

// "Ljava/lang/String;" is java.lang.String, "[[I" int[][]. Hidden classes lose the address that
// makes each of them unique.
[[nodiscard]] std::string ClassNameOfSignature(std::string_view signature);

class JavaMethods {
 public:
  // The JVM keeps about 16 bytes for each jmethodID until it ends, whatever becomes of the class.
  static constexpr uint64_t kMaxMethodIds = uint64_t{1} << 20;

  // For a class whose methods may show up in stacks. On any attached thread.
  void MakeIds(jvmtiEnv* jvmti, jclass type);

  // On the sampler's thread.
  sampling::RuntimeFrame Describe(jvmtiEnv* jvmti, JNIEnv* jni, uint64_t frame);

  // The frame that names the class of an allocated object, above the code that allocated it.
  uint64_t ClassFrame(std::string_view signature);

  [[nodiscard]] uint64_t ids() const { return id_count_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t refused_ids() const { return refused_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t unloaded() const { return unloaded_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t unknown() const { return unknown_.load(std::memory_order_relaxed); }

 private:
  struct Method {
    std::string name;
    std::string file;
    std::vector<jvmtiLineNumberEntry> lines;
  };
  static constexpr size_t kMaxCachedMethods = 65536;
  static constexpr size_t kMaxClassNames = 65536;

  const Method& Find(jvmtiEnv* jvmti, JNIEnv* jni, jmethodID id);
  [[nodiscard]] bool IsId(jmethodID id);

  std::unordered_map<jmethodID, Method> cache_;  // the sampler's thread's own
  std::mutex ids_lock_;
  tsl::robin_set<jmethodID> ids_;
  std::atomic<uint64_t> id_count_{0};
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> unloaded_{0};
  std::atomic<uint64_t> unknown_{0};
  std::mutex class_names_lock_;
  std::unordered_map<std::string, uint64_t> class_numbers_;
  std::vector<std::string> class_names_;
};

}  // namespace spanprof::jvm
