#pragma once

// The stores of our own AsyncLocalStorage: objects of JavaScript whose internal field points to a
// context record. The record goes when the object goes. For the thread of the isolate.

#include <cstdint>
#include <span>
#include <v8.h>

#include "context_record.h"

namespace spanprof::node {

class ContextObjects {
 public:
  explicit ContextObjects(v8::Isolate* isolate);
  ~ContextObjects();
  ContextObjects(const ContextObjects&) = delete;
  ContextObjects& operator=(const ContextObjects&) = delete;

  // Empty: V8 throws, or too many are alive (counted).
  v8::MaybeLocal<v8::Object> New(v8::Local<v8::Context> context, const ContextFields& fields);
  // The record's bytes if the value is such an object; nothing otherwise.
  std::span<const uint8_t> RecordOf(v8::Local<v8::Value> value) const;

  uint64_t live() const { return live_; }
  uint64_t refused() const { return refused_; }
  const ContextCuts& cuts() const { return cuts_; }

 private:
  struct Object;

  void* Allocate(size_t size);
  void Release(Object* object);

  v8::Isolate* const isolate_;
  v8::Global<v8::FunctionTemplate> function_template_;
  v8::Global<v8::Object> pattern_;  // without a record; the others are copies of it
  Object* first_ = nullptr;
  Object* spare_ = nullptr;  // blocks of the usual size, to be used again
  size_t spare_count_ = 0;
  uint64_t live_ = 0;
  uint64_t refused_ = 0;
  ContextCuts cuts_;
};

}  // namespace spanprof::node
