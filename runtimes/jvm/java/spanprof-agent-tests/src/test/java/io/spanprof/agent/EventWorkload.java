package io.spanprof.agent;

import io.spanprof.JavaProfiler;
import io.spanprof.ThreadContext;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;

/** What the JVM reports besides time, each in a method and under a span of its own. */
public final class EventWorkload {
  static final long ALLOCATING = 0xA110CL;
  static final long SYNCHRONIZED = 0x5119CL;
  static final long LOCKED = 0x10C4EDL;
  static final class Parcel {
    final long[] contents = new long[8];
  }

  private static volatile Object keep;
  private static final Object monitor = new Object();
  private static final ReentrantLock lock = new ReentrantLock();

  private EventWorkload() {}

  public static void main(String[] arguments) throws Exception {
    long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
    CountDownLatch ready = new CountDownLatch(2);
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      Thread thread = new Thread(() -> {
        ready.countDown();
        ThreadContext context = ThreadContext.current();
        while (System.nanoTime() < end) {
          context.put(ALLOCATING, ALLOCATING);
          allocateParcels();
          context.put(SYNCHRONIZED, SYNCHRONIZED);
          holdMonitor();
          context.put(LOCKED, LOCKED);
          holdLock();
          context.clear();
        }
      }, "a thread whose name is longer than the kernel keeps " + i);
      thread.start();
      threads.add(thread);
    }
    for (Runnable wait : new Runnable[] {EventWorkload::waitOn, EventWorkload::blockOn}) {
      Thread thread = new Thread(wait, "waiting");
      thread.setDaemon(true);
      thread.start();
    }
    ready.await();
    Thread.currentThread().setName("main under another name");
    JavaProfiler.getInstance().setEndpoint(ALLOCATING, "/parcels");
    while (System.nanoTime() < end) {
      Spans.bare(() -> Spans.burn(1000));
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  // What they do is in their stacks for as long as the program runs.

  private static void sleepOn() {
    try {
      Thread.sleep(1_000_000);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static void waitOn() {
    Object nobodyNotifies = new Object();
    try {
      synchronized (nobodyNotifies) {
        nobodyNotifies.wait();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static void blockOn() {
    Object held = new Object();
    Thread holder = new Thread(() -> {
      synchronized (held) {
        sleepOn();
      }
    }, "holder");
    holder.setDaemon(true);
    holder.start();
    while (holder.getState() != Thread.State.TIMED_WAITING) {
      Thread.yield();
    }
    synchronized (held) {
      keep = held;
    }
  }

  private static void allocateParcels() {
    for (int i = 0; i < 1000; i++) {
      keep = new Parcel();
    }
  }

  private static void holdMonitor() {
    synchronized (monitor) {
      Spans.sink += Spans.burn(200_000);
    }
  }

  private static void holdLock() {
    lock.lock();
    try {
      Spans.sink += Spans.burn(200_000);
    } finally {
      lock.unlock();
    }
  }
}
