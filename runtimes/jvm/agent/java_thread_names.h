#pragma once

// The names of Java threads, as they were when a sample was taken. The kernel's names are cut off
// at 15 bytes, and the JVM gives the first thread none at all.
//
// A thread is asked for its name when it starts and when it ends, and by whoever names samples
// about every tenth of a second. Names of threads that are gone are kept until their samples have
// been named.

#include <cstdint>
#include <jvmti.h>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace spanprof::jvm {

class JavaThreadNames {
 public:
  // On the thread that starts or ends.
  void OnStart(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread);
  void OnEnd(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread);
  // One that was there before us.
  void Add(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread, uint32_t tid);

  // On the sampler's thread. `os_name` is what the kernel called the thread when it was sampled.
  std::string Find(jvmtiEnv* jvmti, JNIEnv* jni, uint32_t tid, uint64_t monotonic_ns,
                   const char* os_name);

 private:
  struct Naming {
    std::string name;
    uint64_t first_seen_ns = 0;
  };
  struct Life {
    jobject thread = nullptr;     // a global reference while it lives
    std::vector<Naming> namings;  // the latest last, and not many
    uint64_t asked_ns = 0;
    uint64_t ended_ns = 0;  // 0: it has not

    void TakeName(std::string name, uint64_t now);
    [[nodiscard]] const std::string& NameAt(uint64_t monotonic_ns, std::string_view os_name) const;
  };
  void ForgetTheDead(uint64_t now);

  std::mutex lock_;
  std::unordered_map<uint32_t, std::vector<Life>> lives_;  // by tid, the latest last
  uint64_t next_cleaning_ns_ = 0;
};

}  // namespace spanprof::jvm
