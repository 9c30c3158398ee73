#include "context_copies.h"

#include <array>
#include <cinttypes>
#include <cstdio>

#include "v8_text.h"

namespace spanprof::node {
namespace {

v8::Local<v8::Value> PrototypeOf(v8::Local<v8::Object> object) {
#if V8_MAJOR_VERSION >= 13
  return object->GetPrototypeV2();
#else
  return object->GetPrototype();
#endif
}

// What is neither a text nor a number is not there.
std::string TextOfField(v8::Isolate* isolate, v8::Local<v8::Value> value) {
  if (value->IsString()) return TextOfValue(isolate, value);
  if (!value->IsBigInt()) return {};
  std::array<char, 17> digits;
  snprintf(digits.data(), digits.size(), "%" PRIx64, value.As<v8::BigInt>()->Uint64Value());
  return digits.data();
}

}  // namespace

bool ContextCopies::Has(v8::Isolate* isolate, v8::Local<v8::Value> value) const {
  // A proxy's prototype is whatever its function answers.
  if (prototype_.IsEmpty() || !value->IsObject() || value->IsProxy()) return false;
  return PrototypeOf(value.As<v8::Object>())->StrictEquals(prototype_.Get(isolate));
}

bool ContextCopies::Read(v8::Local<v8::Context> context, v8::Local<v8::Object> copy,
                         std::vector<std::string>* texts) const {
  v8::Isolate* const isolate = v8::Isolate::GetCurrent();
  texts->clear();
  for (const char* const name : {"traceId", "spanId", "rootSpanId", "endpoint"}) {
    v8::Local<v8::Value> value;
    if (!copy->Get(context, NewText(isolate, name)).ToLocal(&value)) return false;
    texts->push_back(TextOfField(isolate, value));
  }
  v8::Local<v8::Value> tags;
  if (!copy->Get(context, NewText(isolate, "tags")).ToLocal(&tags)) return false;
  if (!tags->IsArray()) return true;
  const uint32_t length = tags.As<v8::Array>()->Length();
  for (uint32_t i = 0; i < length; ++i) {
    v8::Local<v8::Value> value;
    if (!tags.As<v8::Array>()->Get(context, i).ToLocal(&value)) return false;
    texts->push_back(TextOfField(isolate, value));
  }
  return true;
}

}  // namespace spanprof::node
