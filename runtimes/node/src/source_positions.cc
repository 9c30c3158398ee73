#include "source_positions.h"

#include "file_url.h"
#include "v8_text.h"

namespace spanprof::node {
namespace {

// A program that makes functions for ever would fill memory with what we know of them.
constexpr size_t kMaxKnown = 1 << 16;

v8::Local<v8::Value> PropertyOf(v8::Local<v8::Context> context, v8::Local<v8::Object> object,
                                const char* name) {
  v8::Isolate* const isolate = v8::Isolate::GetCurrent();
  v8::Local<v8::String> key;
  v8::Local<v8::Value> value;
  if (v8::String::NewFromUtf8(isolate, name, v8::NewStringType::kInternalized).ToLocal(&key) &&
      object->Get(context, key).ToLocal(&value)) {
    return value;
  }
  return v8::Undefined(isolate);
}

uint32_t NumberOf(v8::Local<v8::Value> value, uint32_t otherwise) {
  return value->IsUint32() ? value.As<v8::Uint32>()->Value() : otherwise;
}

}  // namespace

profile::FrameId AddFrame(profile::Profile& profile, const SourcePosition& position,
                          profile::FrameKind kind) {
  profile::Function function;
  function.name = profile.Intern(position.name);
  function.file = profile.Intern(position.file);
  function.start_line = position.line;
  profile::Frame frame;
  frame.kind = kind;
  frame.function = profile.AddFunction(function);
  frame.line = position.line;
  frame.column = position.column;
  return profile.AddFrame(frame);
}

void SourcePositions::UseMapper(v8::Isolate* isolate, v8::Local<v8::Function> mapper) {
  mapper_.Reset(isolate, mapper);
  known_.clear();
}

void SourcePositions::Reset() { mapper_.Reset(); }

SourcePosition SourcePositions::Ask(v8::Isolate* isolate, SourcePosition given) {
  const v8::HandleScope scope(isolate);
  const v8::Local<v8::Context> context = isolate->GetCurrentContext();
  const v8::TryCatch nothing_leaves(isolate);
  v8::Local<v8::Value> arguments[] = {
      NewText(isolate, given.file), v8::Integer::NewFromUnsigned(isolate, given.line),
      v8::Integer::NewFromUnsigned(isolate, given.column), NewText(isolate, given.name)};
  v8::Local<v8::Value> answer;
  if (!mapper_.Get(isolate)->Call(context, v8::Undefined(isolate), 4, arguments).ToLocal(&answer)) {
    ++mapper_threw_;
    return given;
  }
  if (!answer->IsObject()) return given;
  const v8::Local<v8::Object> mapped = answer.As<v8::Object>();
  if (const v8::Local<v8::Value> file = PropertyOf(context, mapped, "file"); file->IsString()) {
    given.file = TextOfValue(isolate, file);
  }
  given.line = NumberOf(PropertyOf(context, mapped, "line"), given.line);
  given.column = NumberOf(PropertyOf(context, mapped, "column"), given.column);
  if (const v8::Local<v8::Value> name = PropertyOf(context, mapped, "name");
      name->IsString() && name.As<v8::String>()->Length() > 0) {
    given.name = TextOfValue(isolate, name);
  }
  return given;
}

SourcePosition SourcePositions::Of(v8::Isolate* isolate, SourcePosition given, bool may_call) {
  const bool may_be_mapped = !mapper_.IsEmpty() && !given.file.empty() && given.line != 0;
  if (may_be_mapped) {
    const std::string key = given.file + '\0' + std::to_string(given.line) + ':' +
                            std::to_string(given.column) + '\0' + given.name;
    auto known = known_.find(key);
    if (known == known_.end() && may_call) {
      if (known_.size() >= kMaxKnown) known_.clear();
      known = known_.emplace(key, Ask(isolate, given)).first;
    }
    if (known != known_.end()) given = known->second;
  }
  given.file = PathOfUrl(given.file);
  if (given.name.empty()) given.name = "(anonymous)";
  return given;
}

}  // namespace spanprof::node
