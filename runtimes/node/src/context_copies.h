#pragma once

// The contexts of setContext() and runWithContext() where there is no async context frame: objects
// of JavaScript that ts/context_copy.ts makes, known by their prototype. They are read when samples
// are taken over, without any call of JavaScript, so even when none may run any more. For the
// thread of the isolate.

#include <string>
#include <v8.h>
#include <vector>

namespace spanprof::node {

class ContextCopies {
 public:
  void Use(v8::Isolate* isolate, v8::Local<v8::Object> prototype) {
    prototype_.Reset(isolate, prototype);
  }
  void Reset() { prototype_.Reset(); }

  bool Has(v8::Isolate* isolate, v8::Local<v8::Value> value) const;

  // For a value that Has() knows: trace id, span id, root span id, endpoint, and names and values
  // of tags in turn; an empty text for what is not there. False: V8 does not tell.
  bool Read(v8::Local<v8::Context> context, v8::Local<v8::Object> copy,
            std::vector<std::string>* texts) const;

 private:
  v8::Global<v8::Object> prototype_;
};

}  // namespace spanprof::node
