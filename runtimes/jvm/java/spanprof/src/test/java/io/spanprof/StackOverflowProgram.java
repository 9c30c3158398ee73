package io.spanprof;

/**
 * Runs out of stack in the middle of writes, again and again, and after each time uses the context
 * as if nothing had been.
 */
final class StackOverflowProgram {
  private static int leftHalfDone;
  private static long next = 1;

  public static void main(String[] arguments) throws Exception {
    JavaProfiler.getInstance().execute(System.getProperty("test.init"));
    Thread thread = new Thread(null, StackOverflowProgram::overflowOften, "overflow", 256 << 10);
    thread.start();
    thread.join();
    System.out.println("left half done: " + leftHalfDone);
    System.out.println("abandoned: " + LibraryView.counter("abandoned_write"));
    System.out.println("refused: " + LibraryView.counter("nested_write_refused"));
    System.out.println("torn: " + LibraryView.counter("read_torn"));
  }

  private static void overflowOften() {
    ThreadContext context = ThreadContext.current();
    context.put(1, 1);
    java.nio.ByteBuffer object =
        Native.objectMemory(new long[1]).order(java.nio.ByteOrder.nativeOrder());
    for (int round = 0; round < 25; round++) {
      try {
        dive(context, 7 * round % 50);
      } catch (StackOverflowError e) {
        // as intended
      }
      if (object.getLong(RecordLayout.CHECKSUM) == 0) leftHalfDone++;
      long span = next++;
      if (round % 3 == 0) context.put(span, -span);
      if (round % 3 == 1) context.putOtel(span, span, span, -span);
      if (round % 3 == 2) {
        try (ContextScope scope = context.open(span, -span)) {
          check(span);
        }
        context.put(span, -span);
      }
      check(span);
    }
  }

  private static void check(long span) {
    ContextSnapshot seen = LibraryView.ofThisThread();
    if (seen.getSpanId() != span || seen.getRootSpanId() != -span) {
      throw new AssertionError("span " + span + " was put, " + seen.getSpanId() + " is there");
    }
  }

  /** Frames of different sizes, so that the stack ends at a different point of the write. */
  private static int dive(ThreadContext context, int offset) {
    if (offset > 0) return dive(context, offset - 1);
    return deeper(context, 1, 2, 3);
  }

  private static int deeper(ThreadContext context, int a, int b, int c) {
    context.putOtel(a, b, c, a + b);
    context.put(b, c);
    return deeper(context, b, c, a) + 1;
  }
}
