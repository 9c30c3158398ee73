package io.spanprof;

/** An empty native call, for the benchmarks: the floor of everything that goes by JNI. */
public final class NativeCall {
  public static void empty() {
    Native.nothing();
  }

  public static void put(long spanId, long rootSpanId) {
    Native.set(spanId, rootSpanId);
  }

  private NativeCall() {}
}
