import java.io.IOException;
import java.io.InputStream;
import java.util.function.IntUnaryOperator;

/** Classes that are loaded, run until they are compiled, and unloaded again, over and over. */
public final class ClassChurn {
  private static volatile int sink;

  /** What is loaded anew each time. */
  public static final class Work implements IntUnaryOperator {
    @Override
    public int applyAsInt(int x) {
      int sum = x;
      for (int i = 0; i < 200; i++) {
        sum += step(sum, i);
      }
      return sum;
    }

    private static int step(int sum, int i) {
      return Integer.rotateLeft(sum, i & 7) ^ i;
    }
  }

  private static final class Loader extends ClassLoader {
    private final byte[] code;

    Loader(byte[] code) {
      super(ClassChurn.class.getClassLoader());
      this.code = code;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      if (name.equals("ClassChurn$Work")) {
        Class<?> loaded = findLoadedClass(name);
        return loaded != null ? loaded : defineClass(name, code, 0, code.length);
      }
      return super.loadClass(name, resolve);
    }
  }

  public static void main(String[] arguments) throws Exception {
    long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000L;
    byte[] code = read();
    Thread[] threads = new Thread[2];
    for (int i = 0; i < threads.length; i++) {
      threads[i] = new Thread(() -> {
        int rounds = 0;
        while (System.nanoTime() < end) {
          try {
            Class<?> type = new Loader(code).loadClass("ClassChurn$Work");
            IntUnaryOperator work =
                (IntUnaryOperator) type.getDeclaredConstructor().newInstance();
            for (int j = 0; j < 3000; j++) {
              sink += work.applyAsInt(j);
            }
            if (++rounds % 20 == 0) {
              System.gc();
            }
          } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
          }
        }
      });
      threads[i].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private static byte[] read() throws IOException {
    try (InputStream in = ClassChurn.class.getResourceAsStream("ClassChurn$Work.class")) {
      return in.readAllBytes();
    }
  }
}
