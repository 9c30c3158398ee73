package io.spanprof;

/** The calling thread's context as the C reader sees it, whatever the Java half believes. */
final class LibraryView {
  static ContextSnapshot ofThisThread() {
    long[] words = new long[Native.CONTEXT_WORDS];
    int result = Native.get(words);
    if (result < 0) throw new AssertionError("the library's own read failed with " + result);
    return ContextSnapshot.of(words);
  }

  /** Null: nothing published by that thread, or it changed all the time. */
  static ContextSnapshot ofThread(int threadId) {
    long[] words = new long[Native.CONTEXT_WORDS];
    return Native.getByThreadId(threadId, words) < 0 ? null : ContextSnapshot.of(words);
  }

  static long counter(String name) {
    Long value = JavaProfiler.getInstance().getCounters().get(name);
    if (value == null) throw new AssertionError("no counter " + name);
    return value;
  }

  private LibraryView() {}
}
