/**
 * Work in a tree of calls whose methods are named after their place in it: {@code nLR} is called by
 * {@code nL} only, which is called by {@code n} only, which is called by {@code runTree}. So a
 * walked stack can be checked by its names alone.
 */
public final class CallTree implements Runnable {
  private final long end;
  private int seed;
  private long sum;

  private CallTree(long end, int seed) {
    this.end = end;
    this.seed = seed;
  }

  public static void main(String[] arguments) throws InterruptedException {
    long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000L;
    Thread[] threads = new Thread[2];
    for (int i = 0; i < threads.length; i++) {
      threads[i] = new Thread(new CallTree(end, i + 1), "tree-" + i);
      threads[i].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  @Override
  public void run() {
    while (System.nanoTime() < end) {
      runTree();
    }
    if (sum == 42) {
      System.out.println(sum);
    }
  }

  private void runTree() {
    for (int i = 0; i < 2000; i++) {
      n(i);
    }
  }

  private boolean turn() {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    return (seed & 1) == 0;
  }

  private void work(int x) {
    for (int i = 0; i < 30; i++) {
      sum += Integer.rotateLeft(x * 31 + i, i & 15);
    }
  }

  private void n(int x) { work(x); if (turn()) nL(x); else nR(x); work(x + 1); }
  private void nL(int x) { work(x); if (turn()) nLL(x); else nLR(x); work(x + 1); }
  private void nR(int x) { work(x); if (turn()) nRL(x); else nRR(x); work(x + 1); }
  private void nLL(int x) { work(x); if (turn()) nLLL(x); else nLLR(x); work(x + 1); }
  private void nLR(int x) { work(x); if (turn()) nLRL(x); else nLRR(x); work(x + 1); }
  private void nRL(int x) { work(x); if (turn()) nRLL(x); else nRLR(x); work(x + 1); }
  private void nRR(int x) { work(x); if (turn()) nRRL(x); else nRRR(x); work(x + 1); }
  private void nLLL(int x) { work(x); if (turn()) nLLLL(x); else nLLLR(x); work(x + 1); }
  private void nLLR(int x) { work(x); if (turn()) nLLRL(x); else nLLRR(x); work(x + 1); }
  private void nLRL(int x) { work(x); if (turn()) nLRLL(x); else nLRLR(x); work(x + 1); }
  private void nLRR(int x) { work(x); if (turn()) nLRRL(x); else nLRRR(x); work(x + 1); }
  private void nRLL(int x) { work(x); if (turn()) nRLLL(x); else nRLLR(x); work(x + 1); }
  private void nRLR(int x) { work(x); if (turn()) nRLRL(x); else nRLRR(x); work(x + 1); }
  private void nRRL(int x) { work(x); if (turn()) nRRLL(x); else nRRLR(x); work(x + 1); }
  private void nRRR(int x) { work(x); if (turn()) nRRRL(x); else nRRRR(x); work(x + 1); }
  private void nLLLL(int x) { work(x); }
  private void nLLLR(int x) { work(x); }
  private void nLLRL(int x) { work(x); }
  private void nLLRR(int x) { work(x); }
  private void nLRLL(int x) { work(x); }
  private void nLRLR(int x) { work(x); }
  private void nLRRL(int x) { work(x); }
  private void nLRRR(int x) { work(x); }
  private void nRLLL(int x) { work(x); }
  private void nRLLR(int x) { work(x); }
  private void nRLRL(int x) { work(x); }
  private void nRLRR(int x) { work(x); }
  private void nRRLL(int x) { work(x); }
  private void nRRLR(int x) { work(x); }
  private void nRRRL(int x) { work(x); }
  private void nRRRR(int x) { work(x); }
}
