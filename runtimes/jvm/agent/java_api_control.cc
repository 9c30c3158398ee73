// The native half of the Java library: commands, names, counters. See io.spanprof.Native.

#include <cerrno>
#include <jni.h>

#include "agent/agent.h"
#include "agent/java_text.h"
#include <spanprof/context.h>

namespace {

using spanprof::jvm::Agent;
using spanprof::jvm::ArrayOf;
using spanprof::jvm::BytesOf;

// The first byte of an answer: which exception the text is for. As in Native.java.
char KindOf(int code) {
  switch (code) {
    case EINVAL:
      return 'A';  // IllegalArgumentException
    case EBUSY:
    case ENODEV:
    case ENOTSUP:
    case EPROTO:
    case EAGAIN:
    case EPERM:
      return 'S';  // IllegalStateException
    default:
      return 'I';  // IOException
  }
}

}  // namespace

extern "C" {

JNIEXPORT jbyteArray JNICALL Java_io_spanprof_Native_execute(JNIEnv* env, jclass,
                                                             jbyteArray command) {
  const auto answer = Agent::Instance().Execute(BytesOf(env, command));
  if (answer) return ArrayOf(env, '.' + *answer);
  return ArrayOf(env, KindOf(answer.error().code) + spanprof::TextOf(answer.error()));
}

JNIEXPORT jint JNICALL Java_io_spanprof_Native_attribute(JNIEnv* env, jclass, jbyteArray name) {
  const std::string text = BytesOf(env, name);
  return spanprof_attribute(text.data(), text.size());
}

JNIEXPORT jint JNICALL Java_io_spanprof_Native_setEndpoint(JNIEnv* env, jclass, jlong root_span_id,
                                                           jbyteArray name) {
  const std::string text = BytesOf(env, name);
  return spanprof_endpoint_set(static_cast<uint64_t>(root_span_id), text.data(), text.size());
}

JNIEXPORT jbyteArray JNICALL Java_io_spanprof_Native_counterName(JNIEnv* env, jclass, jint index) {
  const char* name = index < 0 ? nullptr : spanprof_counter_name(static_cast<unsigned>(index));
  return name == nullptr ? nullptr : ArrayOf(env, name);
}

JNIEXPORT jlong JNICALL Java_io_spanprof_Native_counterValue(JNIEnv*, jclass, jint index) {
  return index < 0 ? 0 : static_cast<jlong>(spanprof_counter_value(static_cast<unsigned>(index)));
}
}
