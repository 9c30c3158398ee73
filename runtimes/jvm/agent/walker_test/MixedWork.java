import java.lang.invoke.MethodHandles;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/**
 * What makes stacks hard to walk, a thread for each: inlined streams and lambdas, exceptions,
 * native calls and array copies, virtual calls whose targets change so that compiled code is thrown away,
 * monitors, reflection, allocation that keeps a collector busy.
 */
public final class MixedWork {
  private static volatile Object sink;
  private static long end;

  public static void main(String[] arguments) throws InterruptedException {
    end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000L;
    List<Thread> threads = new ArrayList<>();
    threads.add(new Thread(repeat(MixedWork::inlining), "inlining"));
    threads.add(new Thread(repeat(MixedWork::exceptions), "exceptions"));
    threads.add(new Thread(repeat(MixedWork::nativeCalls), "native"));
    threads.add(new Thread(repeat(MixedWork::virtualCalls), "virtual"));
    threads.add(new Thread(repeat(MixedWork::monitors), "monitors"));
    threads.add(new Thread(repeat(MixedWork::monitors), "monitors-2"));
    threads.add(new Thread(repeat(MixedWork::reflection), "reflection"));
    threads.add(new Thread(repeat(MixedWork::allocation), "allocation"));
    for (Thread thread : threads) {
      thread.start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private static Runnable repeat(Runnable work) {
    return () -> {
      while (System.nanoTime() < end) {
        work.run();
      }
    };
  }

  private static void inlining() {
    sink = IntStream.range(0, 2000).filter(i -> i % 3 != 0).mapToObj(Integer::toString)
        .mapToInt(String::length).sum();
  }

  private static void exceptions() {
    int caught = 0;
    for (int i = 0; i < 50; i++) {
      try {
        throwFrom(i % 10);
      } catch (IllegalStateException e) {
        caught += e.getStackTrace().length;
      }
    }
    sink = caught;
  }

  private static void throwFrom(int depth) {
    if (depth == 0) {
      throw new IllegalStateException("thrown");
    }
    throwFrom(depth - 1);
  }

  private static final ThreadLocal<byte[]> BUFFER =
      ThreadLocal.withInitial(() -> new byte[1 << 15]);

  private static void nativeCalls() {
    byte[] data = BUFFER.get();
    Arrays.fill(data, (byte) System.nanoTime());
    CRC32 sum = new CRC32();
    sum.update(data);
    Deflater deflater = new Deflater();
    deflater.setInput(data);
    deflater.finish();
    byte[] packed = new byte[1 << 15];
    int length = deflater.deflate(packed);
    deflater.end();
    System.arraycopy(data, 0, packed, 100, data.length - 200);
    sink = new String(packed, 0, length, StandardCharsets.ISO_8859_1).hashCode() + sum.getValue();
  }

  interface Shape {
    long area(long x);
  }

  private static final Shape[] SHAPES = {
    x -> x * x, x -> x * 3 / 4, x -> x + 17, x -> Long.bitCount(x) * x, x -> x ^ (x >>> 3)
  };
  private static int rounds;

  // Each few rounds another class joins in, which the code compiled so far did not expect.
  private static void virtualCalls() {
    int kinds = 1 + (rounds++ / 50) % SHAPES.length;
    long total = 0;
    for (int i = 0; i < 20000; i++) {
      total += SHAPES[i % kinds].area(i);
    }
    if (rounds % 50 == 0) {
      total += fresh(rounds).area(rounds);
    }
    sink = total;
  }

  private static Shape fresh(int number) {
    return new Shape() {
      @Override
      public long area(long x) {
        return x * number;
      }
    };
  }

  private static final Map<Integer, Integer> SHARED = new HashMap<>();

  private static void monitors() {
    for (int i = 0; i < 200; i++) {
      synchronized (SHARED) {
        SHARED.merge(i % 64, 1, Integer::sum);
      }
    }
    sink = SHARED;
  }

  private static void reflection() {
    try {
      for (int i = 0; i < 100; i++) {
        sink = MixedWork.class.getDeclaredMethod("reflected", int.class).invoke(null, i);
      }
      sink = MethodHandles.lookup().unreflect(
          MixedWork.class.getDeclaredMethod("reflected", int.class)).invokeWithArguments(5);
    } catch (Throwable e) {
      throw new IllegalStateException(e);
    }
  }

  private static Object reflected(int x) {
    return Collections.nCopies(x, "x").toString();
  }

  private static void allocation() {
    List<byte[]> kept = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      kept.add(new byte[1000 + i]);
    }
    sink = kept;
  }
}
