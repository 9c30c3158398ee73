#include "outside_readers.h"

#include "frame_check.h"
#include "process_publication.h"
#include "v8_objects.h"
#include <spanprof/internal/records.hpp>

extern "C" {
// Readers find it by this name.
__attribute__((visibility("default"),
               tls_model("global-dynamic"))) thread_local spanprof::internal::NodeThreadVariable
    otel_thread_ctx_nodejs_v1 = {};
}

namespace spanprof::node {
namespace {

// Whoever interrupts this thread sees the other fields whole as long as this one is not 0.
void SetGate(uint64_t continuation_slot) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  *const_cast<volatile uint64_t*>(&otel_thread_ctx_nodejs_v1.continuation_slot) = continuation_slot;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

uint64_t AddressOf(const uint64_t* slot) { return reinterpret_cast<uint64_t>(slot); }

// Collections may begin within one another.
thread_local int collections = 0;

void OnCollectionBegins(v8::Isolate* /*isolate*/, v8::GCType /*type*/,
                        v8::GCCallbackFlags /*flags*/) {
  SetGate(0);
  ++collections;
}

void OnCollectionEnds(v8::Isolate* isolate, v8::GCType /*type*/, v8::GCCallbackFlags /*flags*/) {
  if (collections == 0) return;  // it began before anything was published
  --collections;
  if (collections == 0) SetGate(AddressOf(ContinuationSlot(isolate)));
}

}  // namespace

Result<void> OutsideReaders::Publish(const v8::Global<v8::Object>& storage,
                                     v8::Local<v8::Object> object, const void* record) {
  if (published_) return {};
  const Result<int64_t> offset = FindRecordOffset(object, record);
  if (!offset) return tl::make_unexpected(offset.error());
  if (Result<void> begun = ProcessPublication::Instance().Begin(*offset); !begun) return begun;
  const v8::HandleScope scope(isolate_);
  internal::NodeThreadVariable& variable = otel_thread_ctx_nodejs_v1;
  variable.storage_handle = AddressOf(SlotOf(storage));
  variable.storage_identity_hash = storage.Get(isolate_)->GetIdentityHash();
  variable.record_offset = static_cast<uint32_t>(*offset);
  variable.undefined = *SlotOf(v8::Undefined(isolate_));
  collections = 0;
  isolate_->AddGCPrologueCallback(&OnCollectionBegins);
  isolate_->AddGCEpilogueCallback(&OnCollectionEnds);
  SetGate(AddressOf(ContinuationSlot(isolate_)));
  published_ = true;
  return {};
}

void OutsideReaders::Withdraw() {
  if (!published_) return;
  published_ = false;
  SetGate(0);
  isolate_->RemoveGCPrologueCallback(&OnCollectionBegins);
  isolate_->RemoveGCEpilogueCallback(&OnCollectionEnds);
  otel_thread_ctx_nodejs_v1 = {};
}

}  // namespace spanprof::node
