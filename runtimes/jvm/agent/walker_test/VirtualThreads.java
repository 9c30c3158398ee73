import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Virtual threads that compute, yield, park and sleep, at different depths. Since 21. */
public final class VirtualThreads {
  private static volatile long sink;

  public static void main(String[] arguments) throws InterruptedException {
    long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000L;
    int kinds = arguments.length > 1 && arguments[1].equals("yield") ? 1 : 4;
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      int kind = i % kinds;
      threads.add(Thread.ofVirtual().start(() -> {
        while (System.nanoTime() < end) {
          level(kind * 8, kind);
        }
      }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private static void level(int depth, int kind) {
    if (depth > 0) {
      level(depth - 1, kind);
      return;
    }
    compute(200);
    switch (kind) {
      case 0:
        Thread.yield();
        break;
      case 1:
        LockSupport.parkNanos(1000);
        break;
      case 2:
        compute(5000);
        break;
      default:
        try {
          Thread.sleep(1);
        } catch (InterruptedException e) {
          throw new IllegalStateException(e);
        }
    }
  }

  private static void compute(int rounds) {
    long x = sink;
    for (int i = 0; i < rounds; i++) {
      x = Long.rotateLeft(x, 5) * 0x9E3779B97F4A7C15L + i;
    }
    sink = x;
  }
}
