package io.spanprof.agent;

import io.spanprof.ContextExecutorService;
import io.spanprof.JavaProfiler;
import io.spanprof.ThreadContext;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** A program that says which span it runs under: {@code SpanWorkload KIND SECONDS}. */
public final class SpanWorkload {
  private static final int ROUNDS = 700; // about a microsecond

  private SpanWorkload() {}

  public static void main(String[] arguments) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Long.parseLong(arguments[1]));
    switch (arguments[0]) {
      case "threads":
        threads(end, ROUNDS);
        break;
      case "calls":
        threads(end, 1);
        break;
      case "pool":
        pool(end);
        break;
      case "virtual":
        virtualThreads(end, 10_000);
        break;
      default:
        throw new IllegalArgumentException(arguments[0]);
    }
  }

  /** A span each microsecond, or as often as can be; and none now and then. */
  private static void threads(long end, int rounds) throws InterruptedException {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      Thread thread = new Thread(() -> changeSpans(end, rounds), "spans " + i);
      thread.start();
      threads.add(thread);
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private static void changeSpans(long end, int rounds) {
    ThreadContext context = ThreadContext.current();
    for (int i = 0; ; i++) {
      int number = i % Spans.COUNT;
      context.put(Spans.id(number), Spans.root(number));
      Spans.under(number, () -> Spans.burn(rounds));
      if (i % 7 == 0) {
        context.clear();
        Spans.bare(() -> Spans.burn(rounds));
      }
      if (i % 1024 == 0 && System.nanoTime() > end) {
        return;
      }
    }
  }

  /** Tasks carry the span they were submitted under to whatever thread runs them. */
  private static void pool(long end) throws InterruptedException {
    ExecutorService plain = Executors.newFixedThreadPool(4);
    ExecutorService carrying = ContextExecutorService.wrap(plain);
    Semaphore waiting = new Semaphore(64);
    JavaProfiler profiler = JavaProfiler.getInstance();
    for (int i = 0; System.nanoTime() < end; i++) {
      int number = i % Spans.COUNT;
      waiting.acquire(2);
      profiler.setContext(Spans.id(number), Spans.root(number));
      carrying.execute(() -> {
        Spans.under(number, () -> Spans.burn(50 * ROUNDS));
        waiting.release();
      });
      // Submitted past the wrapper: it must not show the span of the task before it.
      plain.execute(() -> {
        Spans.bare(() -> Spans.burn(10 * ROUNDS));
        waiting.release();
      });
      profiler.clearContext();
    }
    plain.shutdown();
    plain.awaitTermination(10, TimeUnit.SECONDS);
  }

  private static void virtualThreads(long end, int count) throws Exception {
    // By reflection: this is compiled for 17.
    ExecutorService executor = (ExecutorService) Executors.class
        .getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
    for (int i = 0; i < count; i++) {
      int first = i;
      executor.submit(() -> switchWithinSpans(end, first));
    }
    executor.shutdown();
    executor.awaitTermination(60, TimeUnit.SECONDS);
  }

  private static void switchWithinSpans(long end, int first) {
    JavaProfiler profiler = JavaProfiler.getInstance();
    for (int i = first; System.nanoTime() < end; i++) {
      int number = i % Spans.COUNT;
      profiler.setContext(Spans.id(number), Spans.root(number));
      Spans.under(number, () -> {
        long value = Spans.burn(20 * ROUNDS);
        Thread.yield();
        value += Spans.burn(20 * ROUNDS);
        if (ThreadLocalRandom.current().nextInt(4) == 0) {
          LockSupport.parkNanos(100_000);
          value += Spans.burn(20 * ROUNDS);
        }
        return value;
      });
      profiler.clearContext();
      Spans.bare(() -> Spans.burn(5 * ROUNDS));
      Thread.yield();
      Spans.bare(() -> Spans.burn(5 * ROUNDS));
    }
  }
}
