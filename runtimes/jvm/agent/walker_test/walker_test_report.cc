#include "agent/walker_test/walker_test_report.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/mman.h>

#include "agent/hotspot_failures.h"
#include "agent/hotspot_frame_word.h"

namespace spanprof::jvm {
namespace {

constexpr unsigned kExamples = 6;

class MethodNames {
 public:
  MethodNames(jvmtiEnv* jvmti, const std::unordered_set<uint64_t>& known)
      : jvmti_(jvmti), known_(known) {}

  // Whether it is a marker, or a method that there was.
  [[nodiscard]] bool IsKnown(uint64_t word) const {
    return MarkerOf(word) != FrameMarker::kNone || known_.count(MethodOf(word)) != 0;
  }

  // "package/Class.method"
  const std::string& NameOf(uint64_t word) {
    if (MarkerOf(word) != FrameMarker::kNone) word = MarkerFrameWord(MarkerOf(word));
    const auto [place, is_new] = names_.try_emplace(MethodOf(word));
    if (is_new) place->second = Ask(word);
    return place->second;
  }

 private:
  std::string Ask(uint64_t word) {
    if (const FrameMarker marker = MarkerOf(word); marker != FrameMarker::kNone) {
      return std::string("[") + jvm::NameOf(marker) + "]";
    }
    if (!IsKnown(word)) return "<no method>";
    // NOLINTNEXTLINE(performance-no-int-to-ptr): that is what it is
    auto* const method = reinterpret_cast<jmethodID>(MethodOf(word));
    char* name = nullptr;
    if (jvmti_->GetMethodName(method, &name, nullptr, nullptr) != JVMTI_ERROR_NONE) {
      return "<unloaded>";
    }
    std::string text;
    jclass holder = nullptr;
    char* signature = nullptr;
    if (jvmti_->GetMethodDeclaringClass(method, &holder) == JVMTI_ERROR_NONE &&
        jvmti_->GetClassSignature(holder, &signature, nullptr) == JVMTI_ERROR_NONE) {
      text = signature + 1;
      if (!text.empty()) text.pop_back();
      jvmti_->Deallocate(reinterpret_cast<unsigned char*>(signature));
    }
    text += std::string(".") + name;
    jvmti_->Deallocate(reinterpret_cast<unsigned char*>(name));
    return text;
  }

  jvmtiEnv* const jvmti_;
  const std::unordered_set<uint64_t>& known_;
  std::unordered_map<uint64_t, std::string> names_;
};

std::vector<uint64_t> JavaWords(const WalkerTestStack& stack) {
  std::vector<uint64_t> words;
  for (unsigned i = 0; i < stack.result.depth; ++i) {
    if (sampling::IsRuntimeFrame(stack.words[i])) words.push_back(stack.words[i]);
  }
  return words;
}

bool SameMethods(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](uint64_t x, uint64_t y) { return MethodOf(x) == MethodOf(y); });
}

// Whether the shorter is the outer part of the longer.
bool SameOuterMethods(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  const size_t common = std::min(a.size(), b.size());
  return common != 0 &&
         std::equal(a.end() - static_cast<ptrdiff_t>(common), a.end(),
                    b.end() - static_cast<ptrdiff_t>(common),
                    [](uint64_t x, uint64_t y) { return MethodOf(x) == MethodOf(y); });
}

// The rule of CallTree.java: a method whose name is "n" and some of "LR" is called by the one whose
// name lacks the last letter, and "n" by "runTree".
struct TreeCheck {
  uint64_t checked = 0;
  uint64_t wrong = 0;
};

bool IsTreeName(const std::string& name, std::string& path) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || name.compare(0, dot, "CallTree") != 0) return false;
  path = name.substr(dot + 1);
  return !path.empty() && path[0] == 'n' && path.find_first_not_of("LR", 1) == std::string::npos;
}

// Returns whether the stack breaks the rule. One that ends early is right as far as it goes.
bool CheckTree(const std::vector<uint64_t>& words, MethodNames& names, TreeCheck& check) {
  std::string path;
  bool in_tree = false;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!IsTreeName(names.NameOf(words[i]), path)) continue;
    in_tree = true;
    if (i + 1 == words.size()) break;
    const std::string expected =
        path.size() == 1 ? "CallTree.runTree" : "CallTree." + path.substr(0, path.size() - 1);
    if (names.NameOf(words[i + 1]) != expected) {
      ++check.checked;
      ++check.wrong;
      return true;
    }
  }
  if (in_tree) ++check.checked;
  return false;
}

// CallDepth.java: every "down" is called by another, down to "begin"; "begin" is there.
void PrintStack(FILE* file, const char* title, const WalkerTestStack& stack, MethodNames& names) {
  fprintf(file, "# %s depth=%u %s:", title, stack.result.depth,
          NameOfFailure(stack.result.failure));
  for (unsigned i = 0; i < std::min(stack.result.depth, 40u); ++i) {
    if (sampling::IsRuntimeFrame(stack.words[i])) {
      fprintf(file, " %s@%u", names.NameOf(stack.words[i]).c_str(),
              BytecodeIndexOf(stack.words[i]));
    } else {
      fprintf(file, " %llx", static_cast<unsigned long long>(stack.words[i]));
    }
  }
  fprintf(file, "\n");
}

// The rule of VirtualThreads.java: "level" is called by itself or by the thread's lambda, and that
// by the frames that every virtual thread begins with, in the heap or not.
bool CheckVirtual(const std::vector<uint64_t>& words, bool complete, MethodNames& names,
                  TreeCheck& check) {
  static const std::vector<std::string> kFirst = {
      "VirtualThreads.lambda$main$0",
      "VirtualThreads$$Lambda",
      "java/lang/Thread.runWith",
      "java/lang/VirtualThread.run",
      "java/lang/VirtualThread$VThreadContinuation$1.run",
      "jdk/internal/vm/Continuation.enter0",
      "jdk/internal/vm/Continuation.enter",
      "jdk/internal/vm/Continuation.enterSpecial"};
  bool in_thread = false;
  bool right = true;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& name = names.NameOf(words[i]);
    if (name == "VirtualThreads.level" && i + 1 < words.size()) {
      const std::string& caller = names.NameOf(words[i + 1]);
      const bool frozen = MarkerOf(words[i + 1]) == FrameMarker::kFrozenFrames;
      right = right && (caller == name || caller == kFirst[0] || (frozen && !complete));
    }
    if (name != kFirst[0]) continue;
    in_thread = true;
    if (!complete) continue;
    for (size_t j = 0; j < kFirst.size(); ++j) {
      right = right && i + j < words.size() &&
              names.NameOf(words[i + j]).compare(0, kFirst[j].size(), kFirst[j]) == 0;
    }
    right = right && i + kFirst.size() == words.size();
  }
  check.checked += in_thread;
  check.wrong += !right;
  return !right;
}

struct Totals {
  uint64_t walks = 0;
  uint64_t complete = 0;
  uint64_t with_java = 0;
  uint64_t without_id = 0;
  uint64_t no_method = 0;  // stacks with a word that is no jmethodID
  TreeCheck tree;
  TreeCheck virtual_threads;
  std::map<std::string, uint64_t> failures;
  std::map<std::string, uint64_t> roots;  // the outermost Java frame of complete stacks
  std::vector<uint64_t> nanoseconds;
  std::map<unsigned, std::vector<uint64_t>> by_depth;  // a power of two: nanoseconds
};

void Add(Totals& totals, const WalkerTestStack& stack, const std::vector<uint64_t>& words,
         MethodNames& names, FILE* file) {
  ++totals.walks;
  totals.complete += stack.result.complete;
  totals.with_java += !words.empty();
  for (const uint64_t word : words) {
    totals.without_id += MarkerOf(word) == FrameMarker::kMethodWithoutId;
  }
  if (!std::all_of(words.begin(), words.end(),
                   [&](uint64_t word) { return names.IsKnown(word); }) &&
      ++totals.no_method <= kExamples) {
    PrintStack(file, "no method", stack, names);
  }
  if (!stack.result.complete) ++totals.failures[NameOfFailure(stack.result.failure)];
  if (stack.result.complete)
    ++totals.roots[words.empty() ? "(native)" : names.NameOf(words.back())];
  if (CheckTree(words, names, totals.tree) && totals.tree.wrong <= kExamples) {
    PrintStack(file, "wrong", stack, names);
  }
  if (CheckVirtual(words, stack.result.complete, names, totals.virtual_threads) &&
      totals.virtual_threads.wrong <= kExamples) {
    PrintStack(file, "wrong virtual", stack, names);
  }
  totals.nanoseconds.push_back(stack.nanoseconds);
  unsigned bucket = 1;
  while (bucket < stack.result.depth) bucket *= 2;
  totals.by_depth[bucket].push_back(stack.nanoseconds);
}

void Print(const char* walker, Totals& totals, FILE* file) {
  const auto line = [&](const std::string& name, uint64_t value) {
    fprintf(file, "%s.%s %llu\n", walker, name.c_str(), static_cast<unsigned long long>(value));
  };
  line("walks", totals.walks);
  line("complete", totals.complete);
  line("with_java", totals.with_java);
  line("method_without_id", totals.without_id);
  line("no_method", totals.no_method);
  line("tree_checked", totals.tree.checked);
  line("tree_wrong", totals.tree.wrong);
  line("virtual_checked", totals.virtual_threads.checked);
  line("virtual_wrong", totals.virtual_threads.wrong);
  for (const auto& [name, count] : totals.failures) line("failure." + name, count);
  std::vector<std::pair<uint64_t, std::string>> roots;
  for (const auto& [name, count] : totals.roots) roots.emplace_back(count, name);
  std::sort(roots.rbegin(), roots.rend());
  for (size_t i = 0; i < std::min<size_t>(roots.size(), 8); ++i) {
    line("root." + roots[i].second, roots[i].first);
  }
  if (totals.nanoseconds.empty()) return;
  std::sort(totals.nanoseconds.begin(), totals.nanoseconds.end());
  const auto at = [&](double part) {
    return totals.nanoseconds[static_cast<size_t>(
        part * static_cast<double>(totals.nanoseconds.size() - 1))];
  };
  line("ns_median", at(0.5));
  line("ns_90", at(0.9));
  line("ns_99", at(0.99));
  for (auto& [depth, times] : totals.by_depth) {
    std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2),
                     times.end());
    line("ns_median_to_depth_" + std::to_string(depth), times[times.size() / 2]);
  }
}

}  // namespace

WalkerTestReport::WalkerTestReport() {
  void* memory = mmap(nullptr, kMaxSamples * sizeof(WalkerTestSample), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    next_ = kMaxSamples;
    return;
  }
  samples_ = static_cast<WalkerTestSample*>(memory);
}

std::string WalkerTestReport::StubAt(uint64_t pc) const {
  auto found = stubs_.upper_bound(pc);
  if (found == stubs_.begin()) return "";
  --found;
  return pc - found->first < found->second.second ? found->second.first : "";
}

// Where the thread was, with what is on top of its stack.
void WalkerTestReport::PrintStart(FILE* file, const WalkerTestSample& sample) const {
  fprintf(file, "# at pc=%llx %s fp=sp+%lld:", static_cast<unsigned long long>(sample.pc),
          StubAt(sample.pc).c_str(), static_cast<long long>(sample.frame_pointer));
  for (const uint64_t word : sample.stack) {
    fprintf(file, " %llx", static_cast<unsigned long long>(word));
    if (const std::string stub = StubAt(word); !stub.empty()) fprintf(file, "(%s)", stub.c_str());
  }
  fprintf(file, "\n");
}

void WalkerTestReport::Write(jvmtiEnv* jvmti, FILE* file) {
  const std::lock_guard lock(mutex_);
  MethodNames names(jvmti, methods_);
  Totals hotspot;
  Totals asgct;
  uint64_t both = 0;
  uint64_t same = 0;
  uint64_t same_outer = 0;
  uint64_t examples = 0;
  uint64_t failed_examples = 0;
  const uint64_t count = samples_ == nullptr ? 0 : std::min(next_.load(), kMaxSamples);
  for (uint64_t i = 0; i < count; ++i) {
    const WalkerTestSample& sample = samples_[i];
    if (!sample.finished.load(std::memory_order_acquire)) continue;
    const std::vector<uint64_t> ours = JavaWords(sample.hotspot);
    const std::vector<uint64_t> theirs = JavaWords(sample.asgct);
    Add(hotspot, sample.hotspot, ours, names, file);
    if (!sample.hotspot.result.complete && ++failed_examples <= kExamples) {
      PrintStart(file, sample);
      PrintStack(file, "failed hotspot", sample.hotspot, names);
      PrintStack(file, "    with asgct", sample.asgct, names);
    }
    if (sample.asgct.nanoseconds == 0) continue;  // it was not asked
    Add(asgct, sample.asgct, theirs, names, file);
    if (!sample.hotspot.result.complete || !sample.asgct.result.complete) continue;
    ++both;
    if (SameMethods(ours, theirs)) {
      ++same;
    } else if (SameOuterMethods(ours, theirs)) {
      ++same_outer;
    } else if (++examples <= kExamples) {
      PrintStart(file, sample);
      PrintStack(file, "differs hotspot", sample.hotspot, names);
      PrintStack(file, "differs   asgct", sample.asgct, names);
    }
  }
  if (!frozen_problem_.empty()) fprintf(file, "# %s\n", frozen_problem_.c_str());
  fprintf(file, "threads_without_clock %llu\n", static_cast<unsigned long long>(no_clock_.load()));
  fprintf(file, "both.complete %llu\n", static_cast<unsigned long long>(both));
  fprintf(file, "both.same %llu\n", static_cast<unsigned long long>(same));
  fprintf(file, "both.same_outer %llu\n", static_cast<unsigned long long>(same_outer));
  fprintf(file, "both.different %llu\n", static_cast<unsigned long long>(both - same - same_outer));
  Print("hotspot", hotspot, file);
  if (asgct.walks != 0) Print("asgct", asgct, file);
}

}  // namespace spanprof::jvm
