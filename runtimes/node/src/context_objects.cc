#include "context_objects.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <node.h>
#include <utility>

namespace spanprof::node {
namespace {

// A program that keeps more contexts than this has forgotten to let them go.
constexpr uint64_t kMaxLive = 1 << 20;
// V8 lets thousands of them go at once, and as many are made before it does so again. A context
// with a few tags has room in such a block; two megabytes are kept.
constexpr size_t kBlockBytes = 120;
constexpr size_t kMaxSpare = 1 << 14;

// From V8 14 on a pointer in a field has a tag, so that one kind is not taken for another.
void SetField(v8::Local<v8::Object> object, void* pointer) {
#if V8_MAJOR_VERSION >= 14
  object->SetAlignedPointerInInternalField(0, pointer, v8::kEmbedderDataTypeTagDefault);
#else
  object->SetAlignedPointerInInternalField(0, pointer);
#endif
}

void* FieldOf(v8::Local<v8::Object> object) {
#if V8_MAJOR_VERSION >= 14
  return object->GetAlignedPointerFromInternalField(0, v8::kEmbedderDataTypeTagDefault);
#else
  return object->GetAlignedPointerFromInternalField(0);
#endif
}

}  // namespace

// The field points to `record`, because a reader outside the process takes it for that.
struct ContextObjects::Object {
  ContextObjects* owner;
  Object* previous;
  Object* next;
  v8::Global<v8::Object> weak;
  size_t record_size;
  alignas(8) uint8_t record[1];

  static Object* OfRecord(void* record) {
    return reinterpret_cast<Object*>(static_cast<char*>(record) - offsetof(Object, record));
  }

  void Free() {
    if (previous != nullptr) previous->next = next;
    if (next != nullptr) next->previous = previous;
    if (owner->first_ == this) owner->first_ = next;
    --owner->live_;
    weak.Reset();
    weak.~Global();
    owner->Release(this);
  }
};

ContextObjects::ContextObjects(v8::Isolate* isolate) : isolate_(isolate) {
  const v8::HandleScope scope(isolate);
  const v8::Local<v8::FunctionTemplate> function = v8::FunctionTemplate::New(isolate);
  function->SetClassName(
      v8::String::NewFromUtf8Literal(isolate, "SpanprofContext", v8::NewStringType::kInternalized));
  function->InstanceTemplate()->SetInternalFieldCount(1);
  function_template_.Reset(isolate, function);
}

ContextObjects::~ContextObjects() {
  while (first_ != nullptr) first_->Free();
  while (spare_ != nullptr) free(std::exchange(spare_, spare_->next));
}

void* ContextObjects::Allocate(size_t size) {
  if (size > kBlockBytes) return malloc(size);
  if (spare_ == nullptr) return malloc(kBlockBytes);
  --spare_count_;
  return std::exchange(spare_, spare_->next);
}

void ContextObjects::Release(Object* object) {
  const size_t size = offsetof(Object, record) + object->record_size;
  if (size > kBlockBytes || spare_count_ == kMaxSpare) {
    free(object);
    return;
  }
  object->next = std::exchange(spare_, object);
  ++spare_count_;
}

v8::MaybeLocal<v8::Object> ContextObjects::New(v8::Local<v8::Context> context,
                                               const ContextFields& fields) {
  if (live_ >= kMaxLive) {
    ++refused_;
    return {};
  }
  if (pattern_.IsEmpty()) {
    v8::Local<v8::Object> pattern;
    if (!function_template_.Get(isolate_)->InstanceTemplate()->NewInstance(context).ToLocal(
            &pattern)) {
      return {};
    }
    SetField(pattern, nullptr);
    pattern_.Reset(isolate_, pattern);
  }
  // Half the time of a new instance.
  const v8::Local<v8::Object> object = pattern_.Get(isolate_)->Clone();
  std::array<uint8_t, kMaxContextBytes> bytes;
  const size_t size = EncodeContext(fields, bytes, &cuts_);
  void* const memory = Allocate(offsetof(Object, record) + size);
  if (memory == nullptr) {
    ++refused_;
    return {};
  }
  auto* const made = static_cast<Object*>(memory);
  made->owner = this;
  made->previous = nullptr;
  made->next = first_;
  made->record_size = size;
  new (&made->weak) v8::Global<v8::Object>(isolate_, object);
  memcpy(made->record, bytes.data(), size);
  if (first_ != nullptr) first_->previous = made;
  first_ = made;
  ++live_;
  SetField(object, made->record);
  made->weak.SetWeak(
      made, [](const v8::WeakCallbackInfo<Object>& info) { info.GetParameter()->Free(); },
      v8::WeakCallbackType::kParameter);
  return object;
}

std::span<const uint8_t> ContextObjects::RecordOf(v8::Local<v8::Value> value) const {
  if (!value->IsObject() || !function_template_.Get(isolate_)->HasInstance(value)) return {};
  void* const record = FieldOf(value.As<v8::Object>());
  if (record == nullptr) return {};
  return {static_cast<const uint8_t*>(record), Object::OfRecord(record)->record_size};
}

}  // namespace spanprof::node
