#include "store_contexts.h"

#include <string>

#include "attribute_names.h"
#include "v8_text.h"

namespace spanprof::node {
namespace {

enum : uint32_t { kTraceId, kSpanId, kRootSpanId, kEndpoint, kFirstTag };
// As many as a profile has names for, and what comes before them.
constexpr uint32_t kMaxListLength = kFirstTag + 2 * 64;

}  // namespace

bool ContextTexts::ReadCopy(v8::Local<v8::Context> context, const ContextCopies& copies,
                            v8::Local<v8::Object> copy, StoreCounts* counts) {
  return copies.Read(context, copy, &texts_) && Parse(counts);
}

bool ContextTexts::ReadList(v8::Local<v8::Context> context, v8::Local<v8::Value> list,
                            StoreCounts* counts) {
  texts_.clear();
  if (!list->IsArray()) return false;
  v8::Isolate* const isolate = v8::Isolate::GetCurrent();
  const v8::Local<v8::Array> array = list.As<v8::Array>();
  const uint32_t length = array->Length();
  if (length > kMaxListLength || (length > kFirstTag && (length - kFirstTag) % 2 != 0))
    return false;
  texts_.resize(length);
  for (uint32_t i = 0; i < length; ++i) {
    v8::Local<v8::Value> value;
    if (!array->Get(context, i).ToLocal(&value)) return false;
    if (value->IsUndefined()) continue;
    if (!value->IsString()) return false;
    texts_[i] = TextOfValue(isolate, value);
  }
  texts_.resize(std::max<size_t>(length, kFirstTag));
  return Parse(counts);
}

bool ContextTexts::Parse(StoreCounts* counts) {
  fields_ = {};
  if (!ParseSpanId(texts_[kSpanId], &fields_.span_id) ||
      !ParseSpanId(texts_[kRootSpanId], &fields_.root_span_id) ||
      !ParseTraceId(texts_[kTraceId], &fields_.trace_id_high, &fields_.trace_id_low)) {
    return false;
  }
  fields_.endpoint = texts_[kEndpoint];
  for (size_t i = kFirstTag; i + 1 < texts_.size(); i += 2) {
    const int position = AttributeNames::Instance().PositionOf(texts_[i]);
    if (position < 0) {
      ++counts->tags_without_position;
      continue;
    }
    fields_.tags[static_cast<size_t>(position)] = texts_[i + 1];
  }
  return true;
}

profile::ContextId StoreContexts::Add(const ContextFields& fields) {
  profile::Context context;
  context.trace_id_high = fields.trace_id_high;
  context.trace_id_low = fields.trace_id_low;
  context.span_id = fields.span_id;
  context.root_span_id = fields.root_span_id;
  for (size_t i = 0; i < profile::kTagCount; ++i) {
    context.tags[i] = profile_.Intern(fields.tags[i]);
  }
  if (fields.root_span_id != 0 && !fields.endpoint.empty()) {
    profile_.SetEndpoint(fields.root_span_id, fields.endpoint);
  }
  return profile_.AddContext(context);
}

profile::ContextId StoreContexts::Describe(v8::Local<v8::Value> store) {
  if (const std::span<const uint8_t> record = objects_.RecordOf(store); !record.empty()) {
    const std::optional<ContextFields> fields = DecodeContext(record);
    return fields ? Add(*fields) : profile::kNone;
  }
  const v8::Local<v8::Context> context = isolate_->GetCurrentContext();
  if (copies_.Has(isolate_, store)) {
    ContextTexts texts;
    if (texts.ReadCopy(context, copies_, store.As<v8::Object>(), counts_)) {
      return Add(texts.fields());
    }
    ++counts_->not_asked;
    return profile::kNone;
  }
  if (store->IsUndefined() || read_.IsEmpty()) return profile::kNone;
  if (!may_call_) {
    ++counts_->not_asked;
    return profile::kNone;
  }
  ++counts_->described;
  const v8::TryCatch nothing_leaves(isolate_);
  v8::Local<v8::Value> answer;
  if (!read_->Call(context, v8::Undefined(isolate_), 1, &store).ToLocal(&answer)) {
    ++counts_->function_threw;
    return profile::kNone;
  }
  if (answer->IsUndefined()) return profile::kNone;
  ContextTexts texts;
  if (!texts.ReadList(context, answer, counts_)) {
    ++counts_->answers_refused;
    return profile::kNone;
  }
  return Add(texts.fields());
}

profile::ContextId StoreContexts::ContextOf(const StoreHandles& handles, uint64_t number) {
  const auto known = by_number_.find(number);
  if (known != by_number_.end()) return known->second;
  const v8::HandleScope scope(isolate_);
  const v8::Local<v8::Value> store = handles[number].Get(isolate_);
  int hash = 0;
  if (store->IsObject()) {
    // The same object has a handle for each collection that it lived through.
    hash = store.As<v8::Object>()->GetIdentityHash();
    const auto [first, last] = by_identity_.equal_range(hash);
    for (auto seen = first; seen != last; ++seen) {
      if (handles[seen->second].Get(isolate_)->StrictEquals(store)) {
        return by_number_[number] = by_number_[seen->second];
      }
    }
    by_identity_.emplace(hash, number);
  }
  const profile::ContextId context = Describe(store);
  by_number_[number] = context;
  return context;
}

}  // namespace spanprof::node
