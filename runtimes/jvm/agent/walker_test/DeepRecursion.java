/** Threads that are hundreds of calls deep, in methods that call each other. */
public final class DeepRecursion {
  private static volatile long sink;

  public static void main(String[] arguments) throws InterruptedException {
    long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000L;
    Thread[] threads = new Thread[2];
    for (int i = 0; i < threads.length; i++) {
      threads[i] = new Thread(() -> {
        while (System.nanoTime() < end) {
          sink += even(300, 7);
        }
      });
      threads[i].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private static long even(int depth, long x) {
    if (depth == 0) {
      return spin(x);
    }
    return odd(depth - 1, x * 31 + 1) + 1;
  }

  private static long odd(int depth, long x) {
    if (depth == 0) {
      return spin(x);
    }
    return even(depth - 1, x ^ depth) + 2;
  }

  private static long spin(long x) {
    for (int i = 0; i < 3000; i++) {
      x = Long.rotateLeft(x, 5) * 0x9E3779B97F4A7C15L + i;
    }
    return x;
  }
}
