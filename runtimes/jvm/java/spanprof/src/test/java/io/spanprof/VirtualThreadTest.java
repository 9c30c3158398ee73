package io.spanprof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * Virtual threads, as far as it goes without following their mounts (vthreads=on): between two
 * calls that do not block, a virtual thread stays where it is.
 */
class VirtualThreadTest {
  @BeforeAll
  static void initialise() throws Exception {
    Assumptions.assumeTrue(virtualExecutor() != null, "this JVM has no virtual threads");
    JavaProfiler.getInstance().execute("ctxstorage=otel,attributes=http.route,log=none");
  }

  /** By reflection: the tests are compiled for an older Java. */
  private static ExecutorService virtualExecutor() throws Exception {
    try {
      return (ExecutorService)
          java.util.concurrent.Executors.class
              .getMethod("newVirtualThreadPerTaskExecutor")
              .invoke(null);
    } catch (NoSuchMethodException e) {
      return null;
    }
  }

  private static void onVirtualThreads(int count, Runnable task) throws Exception {
    ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();
    ExecutorService executor = virtualExecutor();
    for (int i = 0; i < count; i++) {
      executor.execute(
          () -> {
            try {
              task.run();
            } catch (Throwable e) {
              failures.add(e);
            }
          });
    }
    executor.shutdown();
    if (!executor.awaitTermination(60, TimeUnit.SECONDS)) throw new AssertionError("still running");
    if (!failures.isEmpty()) throw new AssertionError(failures.size() + " failed", failures.peek());
  }

  @Test
  void allShareAContextThatHoldsNoMemory() throws Exception {
    AtomicReference<ThreadContext> first = new AtomicReference<>();
    onVirtualThreads(1, () -> first.set(ThreadContext.current()));
    onVirtualThreads(10, () -> assertSame(first.get(), ThreadContext.current()));
    assertNotSame(first.get(), ThreadContext.current());
  }

  @Test
  void whatIsPutIsWhatTheLibraryReadsAndAScopeLeavesNothing() throws Exception {
    onVirtualThreads(
        10_000,
        () -> {
          ThreadContext context = ThreadContext.current();
          ContextSnapshot before = LibraryView.ofThisThread();
          assertEquals(0, before.getSpanId(), "another thread's span");
          long span = Thread.currentThread().hashCode() + 1L;
          try (ContextScope scope = context.open(1, 2, span, -span)) {
            context.setTag(0, "/virtual");
            ContextSnapshot seen = LibraryView.ofThisThread();
            assertEquals(span, seen.getSpanId());
            assertEquals(-span, seen.getRootSpanId());
            assertEquals(1, seen.getTraceIdHigh());
            assertEquals(JavaProfiler.getInstance().internTag("/virtual"), seen.getTagId(0));
            assertEquals(span, context.getSpanId());
            assertEquals(-span, context.getRootSpanId());
          }
          assertEquals(0, LibraryView.ofThisThread().getSpanId());
        });
  }

  @Test
  void aPlatformThreadsContextIsSafeOnAVirtualThread() throws Exception {
    ThreadContext mine = ThreadContext.current();
    mine.put(1, 2);
    onVirtualThreads(
        1,
        () -> {
          mine.put(3, 4);
          assertEquals(3, LibraryView.ofThisThread().getSpanId());
          mine.clear();
        });
    assertEquals(1, LibraryView.ofThisThread().getSpanId());
    mine.clear();
  }

  @Test
  void tasksCarryContextsToVirtualThreads() throws Exception {
    ExecutorService executor = virtualExecutor();
    ExecutorService carrying = ContextExecutorService.wrap(executor);
    List<java.util.concurrent.Future<Long>> spans = new ArrayList<>();
    for (long i = 1; i <= 1000; i++) {
      try (ContextScope scope = ThreadContext.current().open(i, i)) {
        spans.add(carrying.submit(() -> LibraryView.ofThisThread().getSpanId()));
      }
    }
    for (int i = 0; i < 1000; i++) assertEquals(i + 1L, spans.get(i).get());
    executor.shutdown();
  }
}
