package io.spanprof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What holds in both storage modes. Each mode is a class of its own, in a JVM of its own. */
abstract class ContextContract {
  static final String OPTIONS = "attributes=http.route;tenant,log=none";

  final JavaProfiler profiler = JavaProfiler.getInstance();

  @AfterEach
  void clear() {
    ThreadContext.current().clear();
  }

  static void assertContext(long traceHigh, long traceLow, long spanId, long rootSpanId) {
    ContextSnapshot seen = LibraryView.ofThisThread();
    assertEquals(traceHigh, seen.getTraceIdHigh());
    assertEquals(traceLow, seen.getTraceIdLow());
    assertEquals(spanId, seen.getSpanId());
    assertEquals(rootSpanId, seen.getRootSpanId());
  }

  /** Runs on a new platform thread and passes on what it throws. */
  static void onNewThread(Callable<Void> task) throws Exception {
    AtomicReference<Throwable> failure = new AtomicReference<>();
    Thread thread =
        new Thread(
            () -> {
              try {
                task.call();
              } catch (Throwable e) {
                failure.set(e);
              }
            });
    thread.start();
    thread.join();
    if (failure.get() != null) throw new AssertionError(failure.get());
  }

  @Test
  void whatIsPutIsWhatTheLibraryReads() {
    ThreadContext context = ThreadContext.current();
    for (int i = 1; i < 50_000; i++) { // long enough for the compilers
      assertEquals(RecordWriter.checksum(i, -i), context.put(i, -i));
      assertContext(0, 0, i, -i);
      assertEquals(RecordWriter.checksum(-i, i), context.putOtel(3L * i, 5L * i, -i, i));
      assertContext(3L * i, 5L * i, -i, i);
      assertEquals(-i, context.getSpanId());
      assertEquals(i, context.getRootSpanId());
    }
  }

  @Test
  void theChecksumIsTheSeedsAndNeverZero() {
    assertEquals(-1, RecordWriter.checksum(0, 0));
    assertEquals(0x9E3779B97F4A7C15L, RecordWriter.checksum(1, 0));
    long span = 0x123456789ABCDEF0L;
    assertEquals(-1, RecordWriter.checksum(span, Long.rotateLeft(span, 32)));
  }

  @Test
  void aPutWithoutATraceTakesTheTraceAway() {
    ThreadContext context = ThreadContext.current();
    context.putOtel(1, 2, 3, 4);
    context.put(5, 6);
    assertContext(0, 0, 5, 6);
    context.putOtel(1, 2, 3, 4);
    context.putOtel(0, 0, 7, 8);
    assertContext(0, 0, 7, 8);
  }

  @Test
  void tagsStayWhenTheSpanChangesAndGoWithClear() {
    ThreadContext context = ThreadContext.current();
    for (int i = 0; i < 20_000; i++) {
      context.put(1, 2);
      assertTrue(context.setTag(0, i % 2 == 0 ? "/cart" : "/pay"));
      assertTrue(context.setTag("tenant", "acme"));
      context.put(3, 2);
      ContextSnapshot seen = LibraryView.ofThisThread();
      assertEquals(profiler.internTag(i % 2 == 0 ? "/cart" : "/pay"), seen.getTagId(0));
      assertEquals(profiler.internTag("acme"), seen.getTagId(1));
      assertEquals(3, seen.getSpanId());
      assertTrue(context.setTag(1, null));
      assertEquals(0, LibraryView.ofThisThread().getTagId(1));
      context.clear();
      seen = LibraryView.ofThisThread();
      assertEquals(0, seen.getSpanId());
      assertEquals(0, seen.getRootSpanId());
      assertEquals(0, seen.getTagId(0));
    }
  }

  @Test
  void tagsThatDoNotExistAreRefused() {
    ThreadContext context = ThreadContext.current();
    assertTrue(context.setTag(0, "x"));
    assertFalse(context.setTag(9, "x"));
    assertFalse(context.setTag(-1, "x"));
    assertFalse(context.setTag(32, "x"));
    assertFalse(context.putCustom(0, 1_000_000));
    assertFalse(context.putCustom(0, -1));
    assertEquals(profiler.internTag("x"), LibraryView.ofThisThread().getTagId(0));
    assertFalse(context.setTag(0, String.join("", java.util.Collections.nCopies(5000, "x"))));
  }

  @Test
  void putCustomTakesTheNumberOfAValue() {
    ThreadContext context = ThreadContext.current();
    int id = profiler.internTag("tenant-ü-𝄞");
    assertNotEquals(0, id);
    assertEquals(id, profiler.internTag("tenant-ü-𝄞"));
    for (int i = 0; i < 20_000; i++) {
      assertTrue(context.putCustom(1, id));
      assertEquals(id, LibraryView.ofThisThread().getTagId(1));
      assertTrue(context.putCustom(1, 0));
      assertEquals(0, LibraryView.ofThisThread().getTagId(1));
    }
  }

  @Test
  void scopesGiveBackIdsTraceAndTags() {
    ThreadContext context = ThreadContext.current();
    for (int i = 0; i < 20_000; i++) {
      context.putOtel(1, 2, 3, 4);
      context.setTag(0, "/parent");
      try (ContextScope outer = context.open(5, 4)) {
        assertContext(0, 0, 5, 4);
        context.setTag(0, "/child");
        context.setTag(1, "acme");
        try (ContextScope inner = context.open(7, 8, 9, 4)) {
          assertContext(7, 8, 9, 4);
          context.clear();
        }
        assertContext(0, 0, 5, 4);
        assertEquals(profiler.internTag("/child"), LibraryView.ofThisThread().getTagId(0));
      }
      assertContext(1, 2, 3, 4);
      ContextSnapshot seen = LibraryView.ofThisThread();
      assertEquals(profiler.internTag("/parent"), seen.getTagId(0));
      assertEquals(0, seen.getTagId(1));
    }
  }

  @Test
  void aScopeClosedTwiceOrElsewhereChangesNothing() throws Exception {
    ThreadContext context = ThreadContext.current();
    ContextScope scope = context.open(1, 1);
    onNewThread(
        () -> {
          ThreadContext.current().put(50, 51);
          scope.close();
          assertContext(0, 0, 50, 51);
          return null;
        });
    assertContext(0, 0, 1, 1);
    scope.close();
    context.put(2, 2);
    scope.close();
    assertContext(0, 0, 2, 2);
  }

  @Test
  void anotherThreadsContextIsNotTouchedByMisuse() throws Exception {
    ThreadContext mine = ThreadContext.current();
    mine.put(1, 2);
    onNewThread(
        () -> {
          mine.putOtel(9, 9, 10, 11);
          mine.setTag(0, "misuse");
          assertContext(9, 9, 10, 11); // of the thread that called
          mine.clear();
          assertContext(0, 0, 0, 0);
          return null;
        });
    assertContext(0, 0, 1, 2);
    assertEquals(0, LibraryView.ofThisThread().getTagId(0));
  }

  @Test
  void aContextThatOutlivesItsThreadTouchesNobody() throws Exception {
    AtomicReference<ThreadContext> kept = new AtomicReference<>();
    onNewThread(
        () -> {
          kept.set(ThreadContext.current());
          kept.get().put(1, 2);
          return null;
        });
    // New threads may be given the object of the ended one.
    for (int i = 0; i < 20; i++) {
      CountDownLatch hasPut = new CountDownLatch(1);
      CountDownLatch misused = new CountDownLatch(1);
      AtomicReference<ContextSnapshot> seen = new AtomicReference<>();
      Thread thread =
          new Thread(
              () -> {
                ThreadContext.current().put(7, 8);
                hasPut.countDown();
                awaitQuietly(misused);
                seen.set(LibraryView.ofThisThread());
              });
      thread.start();
      hasPut.await();
      kept.get().put(66, 66);
      misused.countDown();
      thread.join();
      assertEquals(7, seen.get().getSpanId());
    }
  }

  static void awaitQuietly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void aPoolCarriesTheSubmittersContextAndForgetsIt() throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(2);
    ExecutorService carrying = ContextExecutorService.wrap(pool);
    ThreadContext context = ThreadContext.current();
    ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();
    List<Future<?>> futures = new ArrayList<>();
    for (int i = 1; i <= 20_000; i++) {
      long span = i;
      try (ContextScope scope = context.open(span * 3, span * 5, span, -span)) {
        context.setTag(0, "/" + i % 7);
        int tag = profiler.internTag("/" + i % 7);
        futures.add(
            carrying.submit(
                () -> {
                  ContextSnapshot seen = LibraryView.ofThisThread();
                  if (seen.getSpanId() != span
                      || seen.getRootSpanId() != -span
                      || seen.getTraceIdHigh() != span * 3
                      || seen.getTagId(0) != tag) {
                    wrong.add("task " + span + " ran with span " + seen.getSpanId());
                  }
                  if (span % 11 == 0) throw new IllegalStateException("a task that fails");
                }));
        futures.add(
            pool.submit(
                () -> {
                  ContextSnapshot seen = LibraryView.ofThisThread();
                  if (seen.getSpanId() != 0 || seen.getTagId(0) != 0) {
                    wrong.add("a plain task ran with span " + seen.getSpanId());
                  }
                }));
      }
    }
    carrying.shutdown();
    assertTrue(pool.awaitTermination(60, java.util.concurrent.TimeUnit.SECONDS));
    assertEquals(0, wrong.size(), () -> wrong.peek());
    assertEquals(40_000, futures.size());
  }

  @Test
  void tasksAreWrappedOneByOneToo() throws Exception {
    ThreadContext context = ThreadContext.current();
    context.put(1, 2);
    ContextSnapshot captured = ContextSnapshot.capture();
    Callable<Long> task = () -> LibraryView.ofThisThread().getSpanId();
    Callable<Long> callable = captured.wrap(task);
    context.put(3, 4);
    assertEquals(1, callable.call());
    assertContext(0, 0, 3, 4);
    AtomicReference<Long> seen = new AtomicReference<>();
    ContextExecutor.wrap(Runnable::run)
        .execute(() -> seen.set(LibraryView.ofThisThread().getSpanId()));
    assertEquals(3L, seen.get());
  }

  @Test
  void threadsComeAndGoInWaves() throws Exception {
    ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();
    for (int wave = 0; wave < 100; wave++) {
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        long span = wave * 1000L + i + 1;
        Thread thread =
            new Thread(
                () -> {
                  ContextSnapshot before = LibraryView.ofThisThread();
                  if (before.getSpanId() != 0) wrong.add("began with span " + before.getSpanId());
                  ThreadContext context = ThreadContext.current();
                  for (int k = 0; k < 20; k++) {
                    context.putOtel(span, k, span, span + k);
                    ContextSnapshot seen = LibraryView.ofThisThread();
                    if (seen.getSpanId() != span
                        || seen.getRootSpanId() != span + k
                        || seen.getTraceIdLow() != k) {
                      wrong.add(span + " saw " + seen.getSpanId());
                    }
                  }
                  // And ends without clearing.
                });
        threads.add(thread);
        thread.start();
      }
      for (Thread thread : threads) thread.join();
    }
    assertEquals(0, wrong.size(), () -> wrong.peek());
    assertEquals(0, LibraryView.counter("read_torn"));
    assertEquals(0, LibraryView.counter("nested_write_refused"));
  }

  @Test
  void theSameContextIsGivenToAThreadEachTime() {
    assertSame(ThreadContext.current(), ThreadContext.current());
  }

  @Test
  void endpointsAreRegistered() {
    assertTrue(profiler.setEndpoint(5, "/cart"));
    assertFalse(profiler.setEndpoint(0, "/cart"));
    assertFalse(profiler.setEndpoint(5, ""));
    assertFalse(profiler.setEndpoint(5, null));
  }

  @Test
  void aSecondInitWithOtherOptionsIsRefusedAndNamesBoth() throws Exception {
    IllegalStateException refused =
        org.junit.jupiter.api.Assertions.assertThrows(
            IllegalStateException.class, () -> profiler.execute("attributes=other"));
    assertTrue(refused.getMessage().contains("other"), refused.getMessage());
    assertTrue(refused.getMessage().contains("http.route"), refused.getMessage());
  }
}
