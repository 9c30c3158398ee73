#include "agent/java_methods.h"

#include <algorithm>

#include "agent/hotspot_frame_word.h"
#include "agent/jvmti_text.h"

namespace spanprof::jvm {
namespace {

// In the place of a bytecode's index, which it cannot be: the rest is the number of a class's name,
// and no method's address is so small.
constexpr int32_t kClassInsteadOfMethod = 0xFFFE;

std::string_view PrimitiveName(char code) {
  switch (code) {
    case 'Z':
      return "boolean";
    case 'B':
      return "byte";
    case 'C':
      return "char";
    case 'S':
      return "short";
    case 'I':
      return "int";
    case 'J':
      return "long";
    case 'F':
      return "float";
    case 'D':
      return "double";
    default:
      return "void";
  }
}

}  // namespace

std::string ClassNameOfSignature(std::string_view signature) {
  const size_t dimensions = std::min(signature.find_first_not_of('['), signature.size());
  signature.remove_prefix(dimensions);
  std::string name;
  if (signature.starts_with('L')) {
    signature.remove_prefix(1);
    // A hidden class: "Lshop/Cart$$Lambda.0x0000000801003000;", before 23 with a number and a '/'.
    for (const std::string_view mark : {"$$Lambda", "/0x", ".0x"}) {
      const size_t at = signature.find(mark);
      if (at == std::string_view::npos) continue;
      signature = signature.substr(0, at + (mark[0] == '$' ? mark.size() : 0));
    }
    if (signature.ends_with(';')) signature.remove_suffix(1);
    name = signature;
    std::replace(name.begin(), name.end(), '/', '.');
  } else if (!signature.empty()) {
    name = PrimitiveName(signature[0]);
  }
  for (size_t i = 0; i < dimensions; ++i) name += "[]";
  return name;
}

void JavaMethods::MakeIds(jvmtiEnv* jvmti, jclass type) {
  if (ids() >= kMaxMethodIds) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  jint count = 0;
  JvmtiMemory<jmethodID> methods(jvmti);
  if (jvmti->GetClassMethods(type, &count, methods.out()) != JVMTI_ERROR_NONE) return;
  const std::lock_guard<std::mutex> lock(ids_lock_);
  ids_.insert(methods.get(), methods.get() + count);
  id_count_.store(ids_.size(), std::memory_order_relaxed);
}

bool JavaMethods::IsId(jmethodID id) {
  const std::lock_guard<std::mutex> lock(ids_lock_);
  return ids_.contains(id);
}

const JavaMethods::Method& JavaMethods::Find(jvmtiEnv* jvmti, JNIEnv* jni, jmethodID id) {
  if (cache_.size() >= kMaxCachedMethods) cache_.clear();
  const auto [entry, is_new] = cache_.try_emplace(id);
  Method& method = entry->second;
  if (!is_new) return method;
  if (!IsId(id)) {
    unknown_.fetch_add(1, std::memory_order_relaxed);
    method.name = "<unknown>";
    return method;
  }

  const LocalReferences references(jni);
  jclass type = nullptr;
  JvmtiText signature(jvmti);
  JvmtiText name(jvmti);
  if (jvmti->GetMethodDeclaringClass(id, &type) != JVMTI_ERROR_NONE ||
      jvmti->GetClassSignature(type, signature.out(), nullptr) != JVMTI_ERROR_NONE ||
      jvmti->GetMethodName(id, name.out(), nullptr, nullptr) != JVMTI_ERROR_NONE) {
    unloaded_.fetch_add(1, std::memory_order_relaxed);
    method.name = "<unloaded>";
    return method;
  }
  method.name = ClassNameOfSignature(signature.str()) + "." + name.str();
  JvmtiText file(jvmti);
  if (jvmti->GetSourceFileName(type, file.out()) == JVMTI_ERROR_NONE) method.file = file.str();
  jint count = 0;
  JvmtiMemory<jvmtiLineNumberEntry> lines(jvmti);
  if (jvmti->GetLineNumberTable(id, &count, lines.out()) == JVMTI_ERROR_NONE && count > 0) {
    method.lines.assign(lines.get(), lines.get() + count);
    std::sort(method.lines.begin(), method.lines.end(),
              [](const auto& a, const auto& b) { return a.start_location < b.start_location; });
  }
  return method;
}

sampling::RuntimeFrame JavaMethods::Describe(jvmtiEnv* jvmti, JNIEnv* jni, uint64_t frame) {
  sampling::RuntimeFrame described;
  const uint32_t bytecode = BytecodeIndexOf(frame);
  const uint64_t number = MethodOf(frame);
  if (bytecode == kClassInsteadOfMethod && number <= kMaxClassNames) {
    const std::lock_guard<std::mutex> lock(class_names_lock_);
    described.name = number == 0 || number > class_names_.size() ? "[one of too many classes]"
                                                                 : class_names_[number - 1];
    return described;
  }
  if (const FrameMarker marker = MarkerOf(frame); marker != FrameMarker::kNone) {
    described.name = std::string("[") + NameOf(marker) + "]";
    return described;
  }
  described.kind = profile::FrameKind::kJava;
  const Method& method = Find(jvmti, jni, reinterpret_cast<jmethodID>(number));
  described.name = method.name;
  described.file = method.file;
  if (bytecode == kNoBytecodeIndex) return described;
  for (const jvmtiLineNumberEntry& line : method.lines) {
    if (line.start_location > static_cast<jlocation>(bytecode)) break;
    described.line = static_cast<uint32_t>(line.line_number);
  }
  return described;
}

uint64_t JavaMethods::ClassFrame(std::string_view signature) {
  std::string name = ClassNameOfSignature(signature);
  const std::lock_guard<std::mutex> lock(class_names_lock_);
  auto known = class_numbers_.find(name);
  if (known == class_numbers_.end()) {
    if (class_names_.size() >= kMaxClassNames) return JavaFrameWord(0, kClassInsteadOfMethod);
    class_names_.push_back(name);
    known = class_numbers_.emplace(std::move(name), class_names_.size()).first;
  }
  return JavaFrameWord(known->second, kClassInsteadOfMethod);
}

}  // namespace spanprof::jvm
