#pragma once

// What a thread publishes for readers outside the process: the variable by which they find the
// store of our own AsyncLocalStorage, and through it a record (the draft schema nodejs_v1_dev).
// Setting a context costs nothing more for it: the variable changes when the thread begins and ends
// to publish, and around garbage collections, during which nothing of V8's may be read.
//
// For the thread of the isolate.

#include <cstdint>
#include <v8.h>

#include "base/result.h"

namespace spanprof::node {

class OutsideReaders {
 public:
  explicit OutsideReaders(v8::Isolate* isolate) : isolate_(isolate) {}
  ~OutsideReaders() { Withdraw(); }
  OutsideReaders(const OutsideReaders&) = delete;
  OutsideReaders& operator=(const OutsideReaders&) = delete;

  // The storage has to outlive what is published. `object` is one of ours, with its record.
  Result<void> Publish(const v8::Global<v8::Object>& storage, v8::Local<v8::Object> object,
                       const void* record);
  void Withdraw();

 private:
  v8::Isolate* const isolate_;
  bool published_ = false;
};

}  // namespace spanprof::node
