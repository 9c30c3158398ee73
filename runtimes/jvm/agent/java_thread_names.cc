#include "agent/java_thread_names.h"

#include <iterator>
#include <ranges>
#include <utility>

#include "agent/jvmti_text.h"
#include "context/platform.h"
#include "sampling/cpu_clock.h"

namespace spanprof::jvm {
namespace {

using sampling::MonotonicNanoseconds;

constexpr uint64_t kNameLifetimeNs = 100'000'000;
// Samples are named within a tenth of a second, unless the sampler's thread has to wait.
constexpr uint64_t kMemoryOfTheDeadNs = 2'000'000'000;

std::string AskForName(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread) {
  const LocalReferences references(jni);
  jvmtiThreadInfo info = {};
  if (jvmti->GetThreadInfo(thread, &info) != JVMTI_ERROR_NONE) return "";
  std::string name = info.name == nullptr ? "" : info.name;
  if (info.name != nullptr) jvmti->Deallocate(reinterpret_cast<unsigned char*>(info.name));
  return name;
}

}  // namespace

void JavaThreadNames::Life::TakeName(std::string name, uint64_t now) {
  constexpr size_t kMaxNamings = 8;
  asked_ns = now;
  if (!namings.empty() && (name.empty() || namings.back().name == name)) return;
  if (namings.size() == kMaxNamings) namings.erase(namings.begin());
  namings.push_back({std::move(name), now});
}

const std::string& JavaThreadNames::Life::NameAt(uint64_t monotonic_ns,
                                                 std::string_view os_name) const {
  constexpr size_t kOsNameBytes = 15;
  for (const Naming& naming : std::views::reverse(namings)) {
    if (std::string_view(naming.name).substr(0, kOsNameBytes) == os_name) return naming.name;
  }
  // The kernel has another name for it, or none of its own: by time.
  for (const Naming& naming : std::views::reverse(namings)) {
    if (naming.first_seen_ns <= monotonic_ns) return naming.name;
  }
  return namings.front().name;
}

void JavaThreadNames::OnStart(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread) {
  Add(jvmti, jni, thread, context::CurrentThreadId());
}

void JavaThreadNames::Add(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread, uint32_t tid) {
  Life life;
  life.thread = jni->NewGlobalRef(thread);
  const uint64_t now = MonotonicNanoseconds();
  life.TakeName(AskForName(jvmti, jni, thread), now);
  const std::lock_guard<std::mutex> lock(lock_);
  std::vector<Life>& lives = lives_[tid];
  // One that did not say goodbye has lost its number to this one.
  if (!lives.empty() && lives.back().ended_ns == 0) {
    lives.back().ended_ns = now;
    jni->DeleteGlobalRef(std::exchange(lives.back().thread, nullptr));
  }
  lives.push_back(std::move(life));
}

void JavaThreadNames::OnEnd(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread) {
  std::string name = AskForName(jvmti, jni, thread);
  const uint64_t now = MonotonicNanoseconds();
  const std::lock_guard<std::mutex> lock(lock_);
  ForgetTheDead(now);
  const auto found = lives_.find(context::CurrentThreadId());
  if (found == lives_.end() || found->second.back().ended_ns != 0) return;
  Life& life = found->second.back();
  life.TakeName(std::move(name), now);
  life.ended_ns = now;
  jni->DeleteGlobalRef(std::exchange(life.thread, nullptr));
}

void JavaThreadNames::ForgetTheDead(uint64_t now) {
  if (now < next_cleaning_ns_) return;
  next_cleaning_ns_ = now + kMemoryOfTheDeadNs;
  for (auto entry = lives_.begin(); entry != lives_.end();) {
    std::erase_if(entry->second, [now](const Life& life) {
      return life.ended_ns != 0 && life.ended_ns + kMemoryOfTheDeadNs < now;
    });
    entry = entry->second.empty() ? lives_.erase(entry) : std::next(entry);
  }
}

std::string JavaThreadNames::Find(jvmtiEnv* jvmti, JNIEnv* jni, uint32_t tid, uint64_t monotonic_ns,
                                  const char* os_name) {
  std::unique_lock<std::mutex> lock(lock_);
  const auto found = lives_.find(tid);
  if (found == lives_.end()) return os_name;
  for (const Life& life : found->second) {
    if (life.ended_ns != 0 && monotonic_ns <= life.ended_ns) {
      return life.NameAt(monotonic_ns, os_name);
    }
  }
  const Life& living = found->second.back();
  if (living.ended_ns != 0) return os_name;
  const uint64_t now = MonotonicNanoseconds();
  if (now - living.asked_ns <= kNameLifetimeNs) return living.NameAt(monotonic_ns, os_name);
  // Not under the lock, which a thread that ends takes: asking may have to wait for the JVM.
  const jobject thread = jni->NewLocalRef(living.thread);
  lock.unlock();
  std::string name = AskForName(jvmti, jni, thread);
  lock.lock();
  const auto again = lives_.find(tid);
  const bool same = again != lives_.end() && again->second.back().ended_ns == 0 &&
                    jni->IsSameObject(again->second.back().thread, thread) == JNI_TRUE;
  jni->DeleteLocalRef(thread);
  if (!same) return name;
  Life& life = again->second.back();
  life.TakeName(std::move(name), now);
  return life.NameAt(monotonic_ns, os_name);
}

}  // namespace spanprof::jvm
