// The native half of the Java library: the calls on the calling thread's context. The class is
// io.spanprof.Native, which says what each call is for.
//
// A native method runs on the thread that calls it, also where that thread carries a virtual one:
// the frame pins it.

#include <jni.h>

#include "agent/java_text.h"
#include "agent/record_layout_java.h"
#include "context/platform.h"
#include "context/thread_locals.h"
#include <spanprof/context.hpp>

namespace {

using spanprof::context::IsAttached;
using spanprof::internal::Slot;
using spanprof::internal::ThreadContext;
using spanprof::jvm::BytesOf;

// The order of Native.CONTEXT_WORDS.
enum ContextWord { kTraceHigh, kTraceLow, kSpan, kRoot, kFlags, kFirstTagPair, kWords = 10 };

uint64_t Id(jlong id) { return static_cast<uint64_t>(id); }

// The Java writer may have been thrown out of its middle (StackOverflowError). That we were called
// from Java proves that it does not go on.
ThreadContext* OwnObject() {
  ThreadContext* context = spanprof_thread_v1;
  if (!IsAttached(context)) return nullptr;
  spanprof::internal::AbandonOpenWrite(*context);
  return context;
}

// A whole context that differs from the present one in its ids only: the usual end of a scope.
bool TrySetKeepingTags(const jlong* tag_pairs, uint64_t trace_high, uint64_t trace_low,
                       uint64_t span, uint64_t root) {
  ThreadContext& context = *spanprof_thread_v1;
  uint64_t changed = 0;
  for (unsigned i = 0; i < SPANPROF_TAG_COUNT / 2; ++i) {
    changed |= context.record.tag_pairs[i].load(std::memory_order_relaxed) ^ Id(tag_pairs[i]);
  }
  if (changed != 0) return false;
  return (trace_high | trace_low) == 0
             ? spanprof::internal::TrySet(context, span, root)
             : spanprof::internal::TrySetTrace(context, trace_high, trace_low, span, root);
}

jobject DirectBuffer(JNIEnv* env, void* memory, size_t bytes, jlongArray address) {
  const auto value = static_cast<jlong>(reinterpret_cast<uintptr_t>(memory));
  env->SetLongArrayRegion(address, 0, 1, &value);
  return env->NewDirectByteBuffer(memory, static_cast<jlong>(bytes));
}

jint StoreContext(JNIEnv* env, const spanprof_context& context, jlongArray out) {
  jlong words[kWords];
  words[kTraceHigh] = static_cast<jlong>(context.trace_id_high);
  words[kTraceLow] = static_cast<jlong>(context.trace_id_low);
  words[kSpan] = static_cast<jlong>(context.span_id);
  words[kRoot] = static_cast<jlong>(context.root_span_id);
  words[kFlags] = static_cast<jlong>(context.trace_flags);
  for (unsigned i = 0; i < SPANPROF_TAG_COUNT / 2; ++i) {
    words[kFirstTagPair + i] =
        static_cast<jlong>(uint64_t{context.tags[2 * i + 1]} << 32 | uint64_t{context.tags[2 * i]});
  }
  env->SetLongArrayRegion(out, 0, kWords, words);
  return 0;
}

}  // namespace

extern "C" {

JNIEXPORT jint JNICALL Java_io_spanprof_Native_layoutVersion(JNIEnv*, jclass) {
  return spanprof::jvm::RecordLayoutVersion();
}

JNIEXPORT jboolean JNICALL Java_io_spanprof_Native_isInitialized(JNIEnv*, jclass) {
  return spanprof_is_initialized() != 0 ? JNI_TRUE : JNI_FALSE;
}

JNIEXPORT jboolean JNICALL Java_io_spanprof_Native_isOtelMode(JNIEnv*, jclass) {
  return spanprof_is_otel_mode() != 0 ? JNI_TRUE : JNI_FALSE;
}

JNIEXPORT jint JNICALL Java_io_spanprof_Native_threadId(JNIEnv*, jclass) {
  return static_cast<jint>(spanprof::context::CurrentThreadId());
}

JNIEXPORT jobject JNICALL Java_io_spanprof_Native_unattachedMemory(JNIEnv* env, jclass,
                                                                   jlongArray address) {
  return DirectBuffer(env, &spanprof::context::unattached_thread, sizeof(ThreadContext), address);
}

JNIEXPORT jobject JNICALL Java_io_spanprof_Native_objectMemory(JNIEnv* env, jclass,
                                                               jlongArray address) {
  ThreadContext* context = OwnObject();
  if (context == nullptr) return nullptr;
  return DirectBuffer(env, context, sizeof(ThreadContext), address);
}

JNIEXPORT jobject JNICALL Java_io_spanprof_Native_slotMemory(JNIEnv* env, jclass,
                                                             jlongArray address) {
  ThreadContext* context = OwnObject();
  if (context == nullptr) return nullptr;
  Slot* slot = context->slot.load(std::memory_order_relaxed);
  return slot == nullptr ? nullptr : DirectBuffer(env, slot, sizeof(Slot), address);
}

JNIEXPORT jboolean JNICALL Java_io_spanprof_Native_set(JNIEnv*, jclass, jlong span, jlong root) {
  // Inline, and first: this is where most calls end.
  if (spanprof::internal::TrySet(*spanprof_thread_v1, Id(span), Id(root))) return JNI_TRUE;
  OwnObject();
  spanprof_context_set(Id(span), Id(root));
  return IsAttached(spanprof_thread_v1) ? JNI_TRUE : JNI_FALSE;
}

JNIEXPORT jboolean JNICALL Java_io_spanprof_Native_setTrace(JNIEnv*, jclass, jlong trace_high,
                                                            jlong trace_low, jlong span,
                                                            jlong root) {
  if (spanprof::internal::TrySetTrace(*spanprof_thread_v1, Id(trace_high), Id(trace_low), Id(span),
                                      Id(root))) {
    return JNI_TRUE;
  }
  OwnObject();
  spanprof_context_set_trace(Id(trace_high), Id(trace_low), Id(span), Id(root));
  return IsAttached(spanprof_thread_v1) ? JNI_TRUE : JNI_FALSE;
}

JNIEXPORT void JNICALL Java_io_spanprof_Native_clear(JNIEnv*, jclass) {
  constexpr jlong kNoTags[SPANPROF_TAG_COUNT / 2] = {};
  if (TrySetKeepingTags(kNoTags, 0, 0, 0, 0)) return;
  // A thread that never had a context need not be attached to have none.
  if (OwnObject() != nullptr) spanprof_context_clear();
}

JNIEXPORT jint JNICALL Java_io_spanprof_Native_setTagId(JNIEnv*, jclass, jint position, jint id) {
  OwnObject();
  if (position < 0) return spanprof_context_set_tag_id(SPANPROF_TAG_COUNT, 0);  // is counted
  return spanprof_context_set_tag_id(static_cast<unsigned>(position), static_cast<uint32_t>(id));
}

JNIEXPORT jint JNICALL Java_io_spanprof_Native_setKnownTagId(JNIEnv*, jclass, jint position,
                                                             jint id) {
  const auto slot = static_cast<unsigned>(position);
  const auto known_id = static_cast<uint32_t>(id);
  if (spanprof::internal::TrySetTag(*spanprof_thread_v1, slot, known_id)) return 0;
  OwnObject();
  return spanprof_context_set_tag_id(slot, known_id);
}

JNIEXPORT jint JNICALL Java_io_spanprof_Native_replace(JNIEnv*, jclass, jlong trace_high,
                                                       jlong trace_low, jlong span, jlong root,
                                                       jint flags, jlong tags01, jlong tags23,
                                                       jlong tags45, jlong tags67, jlong tags89) {
  const jlong pairs[SPANPROF_TAG_COUNT / 2] = {tags01, tags23, tags45, tags67, tags89};
  if (flags == 0 && TrySetKeepingTags(pairs, Id(trace_high), Id(trace_low), Id(span), Id(root))) {
    return 0;
  }
  OwnObject();
  spanprof_context context = {sizeof(spanprof_context),
                              static_cast<uint32_t>(flags),
                              Id(trace_high),
                              Id(trace_low),
                              Id(span),
                              Id(root),
                              {}};
  for (unsigned i = 0; i < SPANPROF_TAG_COUNT / 2; ++i) {
    context.tags[2 * i] = static_cast<uint32_t>(Id(pairs[i]));
    context.tags[2 * i + 1] = static_cast<uint32_t>(Id(pairs[i]) >> 32);
  }
  return spanprof_context_update(&context);
}

JNIEXPORT jint JNICALL Java_io_spanprof_Native_get(JNIEnv* env, jclass, jlongArray out) {
  OwnObject();
  spanprof_context context = {sizeof(spanprof_context), 0, 0, 0, 0, 0, {}};
  if (const int error = spanprof_context_get(&context); error < 0) return error;
  return StoreContext(env, context, out);
}

JNIEXPORT jint JNICALL Java_io_spanprof_Native_getByThreadId(JNIEnv* env, jclass, jint tid,
                                                             jlongArray out) {
  spanprof_context context = {sizeof(spanprof_context), 0, 0, 0, 0, 0, {}};
  if (const int error = spanprof_context_get_by_tid(tid, &context); error < 0) return error;
  return StoreContext(env, context, out);
}

JNIEXPORT jlong JNICALL Java_io_spanprof_Native_spanId(JNIEnv*, jclass) {
  OwnObject();
  spanprof_context context = {sizeof(spanprof_context), 0, 0, 0, 0, 0, {}};
  return spanprof_context_get(&context) < 0 ? 0 : static_cast<jlong>(context.span_id);
}

JNIEXPORT jlong JNICALL Java_io_spanprof_Native_rootSpanId(JNIEnv*, jclass) {
  OwnObject();
  spanprof_context context = {sizeof(spanprof_context), 0, 0, 0, 0, 0, {}};
  return spanprof_context_get(&context) < 0 ? 0 : static_cast<jlong>(context.root_span_id);
}

JNIEXPORT jint JNICALL Java_io_spanprof_Native_intern(JNIEnv* env, jclass, jbyteArray value) {
  const std::string text = BytesOf(env, value);
  return static_cast<jint>(spanprof_intern(text.data(), text.size()));
}

JNIEXPORT void JNICALL Java_io_spanprof_Native_nothing(JNIEnv*, jclass) {}
}
