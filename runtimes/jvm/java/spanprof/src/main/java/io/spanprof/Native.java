package io.spanprof;

import java.nio.ByteBuffer;

/**
 * The native methods. None may be called before {@link NativeLibrary#AVAILABLE} was seen to be
 * true.
 *
 * <p>Those on a context act on the native thread that the caller runs on. A call from Java proves
 * to them that no write of the Java writer is in progress on that thread, so they also repair a
 * record that such a write left half done.
 */
final class Native {
  /** The longs of a context: trace id high and low, span, root, flags, five pairs of tags. */
  static final int CONTEXT_WORDS = 10;

  /** Must be {@link RecordLayout#VERSION}. */
  static native int layoutVersion();

  static native boolean isInitialized();

  static native boolean isOtelMode();

  /** The system's number of the thread. */
  static native int threadId();

  /** What stands for the object of a thread that has none: the same for all, never written. */
  static native ByteBuffer unattachedMemory(long[] address);

  /** The thread's object, which its first set gives it, or null; its address in address[0]. */
  static native ByteBuffer objectMemory(long[] address);

  /** The slot that the thread publishes in, or null if nothing is published outside. */
  static native ByteBuffer slotMemory(long[] address);

  /** False: not initialised, nothing was kept. */
  static native boolean set(long spanId, long rootSpanId);

  static native boolean setTrace(long traceHigh, long traceLow, long spanId, long rootSpanId);

  static native void clear();

  /** 0, or a negative errno value, as all of the following that return int. */
  static native int setTagId(int position, int id);

  /** The same for a position and an id that are known to exist. */
  static native int setKnownTagId(int position, int id);

  static native int replace(
      long traceHigh,
      long traceLow,
      long spanId,
      long rootSpanId,
      int flags,
      long tags01,
      long tags23,
      long tags45,
      long tags67,
      long tags89);

  static native int get(long[] context);

  static native int getByThreadId(int threadId, long[] context);

  static native long spanId();

  static native long rootSpanId();

  /** The number that stands for a tag's value, or 0. */
  static native int intern(byte[] utf8);

  /** The position of an attribute, which is added if it is new. */
  static native int attribute(byte[] utf8);

  static native int setEndpoint(long rootSpanId, byte[] utf8);

  /** The answer behind a dot; behind A, S or I: why the command failed, and what to throw. */
  static native byte[] execute(byte[] utf8);

  /** Null behind the last one. */
  static native byte[] counterName(int index);

  static native long counterValue(int index);

  /** What a native call costs; for the benchmarks. */
  static native void nothing();

  private Native() {}
}
