package io.spanprof.agent;

import io.spanprof.JavaProfiler;
import io.spanprof.ThreadContext;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassDefinition;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongUnaryOperator;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/**
 * Everything that is hard on a profiler of JVMs, at once: {@code StressWorkload SECONDS FILE}. Ends
 * with status 0 if the program itself noticed nothing.
 */
public final class StressWorkload {
  private static final AtomicReference<Throwable> problem = new AtomicReference<>();
  private static volatile Object keep;
  private static volatile long sink;

  /** Loaded again and again by loaders of its own, and unloaded with them. */
  public static final class Loaded implements LongUnaryOperator {
    @Override
    public long applyAsLong(long value) {
      long result = value;
      for (int i = 0; i < 1000; i++) {
        result = result * 31 + i;
      }
      return result;
    }
  }

  /** Runs while it is given new code. */
  public static final class Redefined {
    static long spin(long value) {
      long result = value;
      for (int i = 0; i < 10_000; i++) {
        result = result * 33 ^ i;
      }
      return result;
    }
  }

  private interface Task {
    void run() throws Exception;
  }

  private StressWorkload() {}

  public static void main(String[] arguments) throws Exception {
    long seconds = Long.parseLong(arguments[0]);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    List<Thread> threads = new ArrayList<>();
    byte[] loadedClass = classFile(Loaded.class);
    threads.add(repeat("classes", end, () -> loadAndForget(loadedClass)));
    threads.add(repeat("exceptions", end, () -> throwThrough(200)));
    threads.add(repeat("deoptimisation", end, StressWorkload::changeTypes));
    threads.add(repeat("native", end, StressWorkload::callNative));
    threads.add(repeat("garbage", end, StressWorkload::allocate));
    threads.add(repeat("churn", end, StressWorkload::churn));
    if (RedefinitionAgent.instrumentation != null) {
      byte[] redefinedClass = classFile(Redefined.class);
      threads.add(repeat("redefinition", end, () -> redefine(redefinedClass)));
      threads.add(repeat("redefined", end, StressWorkload::callRedefined));
    }
    if (Runtime.version().feature() >= 21) {
      threads.add(repeat("virtual", end, StressWorkload::virtualThreads));
    }
    String options = "cpu=500us,wall=1ms,alloc=64k,lock=10us,ctxstorage=otel,file=" + arguments[1]
        + (Runtime.version().feature() >= 21 ? ",vthreads=on" : "");
    JavaProfiler profiler = JavaProfiler.getInstance();
    long early = 0;
    for (int i = 0; System.nanoTime() < end; i++) {
      profiler.execute("start," + options + (i % 4 == 3 ? ",walker=asgct" : ""));
      Thread.sleep(i % 3 * 300 + 50);
      profiler.execute("dump,file=" + arguments[1] + ".dump.jfr");
      profiler.execute("stop");
      if (early == 0 && end - System.nanoTime() < TimeUnit.SECONDS.toNanos(seconds * 3 / 4)) {
        early = residentKilobytes();
      }
    }
    for (Thread thread : threads) {
      thread.join();
    }
    System.out.println("grew " + (residentKilobytes() - early) + " KiB");
    System.out.println(problem.get() == null ? "done" : "problem: " + problem.get());
    new File(arguments[1] + ".dump.jfr").delete();
    System.exit(problem.get() == null ? 0 : 1);
  }

  private static Thread repeat(String name, long end, Task task) {
    Thread thread = new Thread(() -> {
      ThreadContext context = ThreadContext.current();
      try {
        for (long i = 1; System.nanoTime() < end; i++) {
          context.put(i, i);
          task.run();
          if (context.getSpanId() != i) {
            throw new IllegalStateException(name + " lost its span " + i);
          }
          context.clear();
        }
      } catch (Throwable e) {
        e.printStackTrace(System.out);
        problem.compareAndSet(null, e);
      }
    }, name);
    thread.start();
    return thread;
  }

  private static void loadAndForget(byte[] loadedClass) throws Exception {
    ClassLoader loader = new ClassLoader(StressWorkload.class.getClassLoader()) {
      @Override
      protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!name.equals(Loaded.class.getName())) {
          return super.loadClass(name, resolve);
        }
        return defineClass(name, loadedClass, 0, loadedClass.length);
      }
    };
    LongUnaryOperator function = (LongUnaryOperator) loader.loadClass(Loaded.class.getName())
        .getDeclaredConstructor().newInstance();
    for (int i = 0; i < 200; i++) {
      sink += function.applyAsLong(i);
    }
  }

  /** The same code is new code to the JVM. */
  private static void redefine(byte[] redefinedClass) throws Exception {
    RedefinitionAgent.instrumentation.redefineClasses(
        new ClassDefinition(Redefined.class, redefinedClass));
    Thread.sleep(2);
  }

  private static void callRedefined() {
    sink += Redefined.spin(sink);
  }

  private static void throwThrough(int depth) {
    try {
      throwFrom(depth);
    } catch (IllegalStateException expected) {
      sink += expected.getStackTrace().length;
    }
  }

  private static void throwFrom(int depth) {
    if (depth == 0) {
      throw new IllegalStateException();
    }
    throwFrom(depth - 1);
  }

  /** What the compiler takes for granted is not so in the next round. */
  private static void changeTypes() {
    LongUnaryOperator[] all = {v -> v + 1, v -> v * 3, v -> v ^ 5, v -> -v, v -> v >>> 1};
    for (LongUnaryOperator operator : all) {
      long value = sink;
      for (int i = 0; i < 20_000; i++) {
        value = apply(operator, value);
      }
      sink = value;
    }
  }

  private static long apply(LongUnaryOperator operator, long value) {
    return operator.applyAsLong(value);
  }

  private static void callNative() {
    byte[] data = new byte[20_000];
    CRC32 crc = new CRC32();
    crc.update(data);
    Deflater deflater = new Deflater();
    deflater.setInput(data);
    deflater.finish();
    sink += crc.getValue() + deflater.deflate(new byte[1000]);
    deflater.end();
    Thread.yield();
  }

  private static void allocate() {
    List<byte[]> some = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      some.add(new byte[i * 50]);
    }
    keep = some;
  }

  private static void churn() throws InterruptedException {
    Thread[] threads = new Thread[8];
    for (int i = 0; i < threads.length; i++) {
      threads[i] = new Thread(() -> {
        ThreadContext.current().put(7, 7);
        allocate();
      });
      threads[i].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private static void virtualThreads() throws Exception {
    ExecutorService executor = (ExecutorService) Executors.class
        .getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
    for (int i = 0; i < 200; i++) {
      long span = 1000 + i;
      executor.submit(() -> {
        JavaProfiler profiler = JavaProfiler.getInstance();
        profiler.setContext(span, span);
        Thread.yield();
        allocate();
        Thread.yield();
        profiler.clearContext();
      });
    }
    executor.shutdown();
    executor.awaitTermination(60, TimeUnit.SECONDS);
  }

  private static byte[] classFile(Class<?> type) throws IOException {
    String name = type.getName().substring(type.getName().lastIndexOf('.') + 1) + ".class";
    try (InputStream in = type.getResourceAsStream(name)) {
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      in.transferTo(out);
      return out.toByteArray();
    }
  }

  private static long residentKilobytes() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) {
        return Long.parseLong(line.replaceAll("[^0-9]", ""));
      }
    }
    return 0;
  }
}
