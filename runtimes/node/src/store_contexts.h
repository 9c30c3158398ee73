#pragma once

// From stores to the contexts of a profile, while one is made of samples. An object of ours has its
// record, or is a copy of a context; of any other the function that was given to attach() is asked,
// once for each distinct store.

#include <cstdint>
#include <unordered_map>
#include <v8.h>
#include <vector>

#include "context_copies.h"
#include "context_objects.h"
#include "profile/profile.h"
#include "store_handles.h"

namespace spanprof::node {

struct StoreCounts {
  uint64_t described = 0;  // stores that the function of attach() was asked for
  uint64_t function_threw = 0;
  uint64_t answers_refused = 0;  // not a list of texts, or ids that are none
  uint64_t not_asked = 0;        // JavaScript may not run any more
  uint64_t tags_without_position = 0;
};

// A context as texts: [trace id, span id, root span id, endpoint, tag name, tag value, ...].
class ContextTexts {
 public:
  // Of the list that the package makes of an answer of attach()'s function, each a text or
  // undefined. False: it is something else.
  bool ReadList(v8::Local<v8::Context> context, v8::Local<v8::Value> list, StoreCounts* counts);
  // False: V8 does not tell.
  bool ReadCopy(v8::Local<v8::Context> context, const ContextCopies& copies,
                v8::Local<v8::Object> copy, StoreCounts* counts);
  const ContextFields& fields() const { return fields_; }

 private:
  bool Parse(StoreCounts* counts);

  std::vector<std::string> texts_;
  ContextFields fields_;
};

class StoreContexts {
 public:
  // `read` may be empty; `may_call` is false when JavaScript may not run.
  StoreContexts(v8::Isolate* isolate, const ContextObjects& objects, const ContextCopies& copies,
                v8::Local<v8::Function> read, bool may_call, profile::Profile& profile,
                StoreCounts* counts)
      : isolate_(isolate),
        objects_(objects),
        copies_(copies),
        read_(read),
        may_call_(may_call),
        profile_(profile),
        counts_(counts) {}

  profile::ContextId ContextOf(const StoreHandles& handles, uint64_t number);

 private:
  profile::ContextId Describe(v8::Local<v8::Value> store);
  profile::ContextId Add(const ContextFields& fields);

  v8::Isolate* const isolate_;
  const ContextObjects& objects_;
  const ContextCopies& copies_;
  const v8::Local<v8::Function> read_;
  const bool may_call_;
  profile::Profile& profile_;
  StoreCounts* const counts_;
  std::unordered_map<uint64_t, profile::ContextId> by_number_;
  // Of objects: by identity hash, the numbers of those seen so far.
  std::unordered_multimap<int, uint64_t> by_identity_;
};

}  // namespace spanprof::node
