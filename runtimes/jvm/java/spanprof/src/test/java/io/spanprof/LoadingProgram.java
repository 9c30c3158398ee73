package io.spanprof;

/** Uses everything once and says what it found. */
final class LoadingProgram {
  public static void main(String[] arguments) throws Exception {
    JavaProfiler profiler = JavaProfiler.getInstance();
    ThreadContext context = ThreadContext.current();
    try (ContextScope scope = context.open(1, 2)) {
      context.putOtel(1, 2, 3, 4);
      context.setTag("tenant", "acme");
    }
    context.clear();
    profiler.setContext(1, 2);
    profiler.clearContext();
    ContextExecutor.wrap(Runnable::run).execute(() -> {});
    System.out.println("available: " + profiler.isAvailable());
    System.out.println("why: " + profiler.whyUnavailable());
    try {
      System.out.println("init: " + profiler.execute("log=none"));
      System.out.println("put: " + (context.put(1, 2) == RecordWriter.checksum(1, 2)));
    } catch (IllegalStateException e) {
      System.out.println("refused: " + e.getMessage());
    }
  }
}
