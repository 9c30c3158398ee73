package io.spanprof.benchmarks;

import com.sun.management.OperatingSystemMXBean;
import io.spanprof.JavaProfiler;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import one.profiler.AsyncProfiler;

/**
 * What sampling costs the program: {@code OverheadBenchmark ROUNDS}. Windows of half a second with a
 * profiler and without, in one JVM, in an order that changes from round to round. What counts is the
 * work done in a second of the workers' CPU time, which a busy machine changes little, as a ratio to
 * the windows without a profiler beside it.
 */
public final class OverheadBenchmark {
  private static final long WINDOW_NS = TimeUnit.MILLISECONDS.toNanos(500);
  private static final int WORKERS = 2;

  private interface Profiler {
    void start(File file) throws Exception;

    void stop() throws Exception;
  }

  private static final class Row {
    final List<Double> ratios = new ArrayList<>(); // of work for CPU time, to the window before
    final List<Double> others = new ArrayList<>(); // CPU time of all other threads, per second
    long samples;
    long bytes;
    double cpuSeconds;
  }

  private static final class Worker extends Thread {
    volatile long done;
    volatile boolean stop;
    private final Map<Integer, String> cache = new HashMap<>();
    private final Random random = new Random(1);

    @Override
    public void run() {
      while (!stop) {
        descend(random.nextInt(24) + 8);
        done++;
      }
    }

    private int descend(int depth) {
      if (depth > 0) {
        return descend(depth - 1) + depth;
      }
      int key = random.nextInt(5000);
      String text = cache.computeIfAbsent(key, k -> "item " + k);
      int[] numbers = new int[64];
      for (int i = 0; i < numbers.length; i++) {
        numbers[i] = text.hashCode() * i ^ key;
      }
      Arrays.sort(numbers);
      return numbers[7];
    }
  }

  private static volatile Worker[] workers;

  private OverheadBenchmark() {}

  public static void main(String[] arguments) throws Exception {
    int rounds = Integer.parseInt(arguments[0]);
    Map<String, Profiler> profilers = new LinkedHashMap<>();
    for (int hertz : new int[] {100, 1000}) {
      long micros = 1_000_000 / hertz;
      profilers.put(hertz + " Hz, spanprof", spanprof("cpu=" + micros + "us"));
      profilers.put(hertz + " Hz, spanprof, walker=asgct",
          spanprof("walker=asgct,cpu=" + micros + "us"));
      // Perf's clock where ours uses it too; else a timer each.
      String event = hertz > 250 ? "cpu-clock" : "ctimer";
      profilers.put(hertz + " Hz, async-profiler (" + event + ")",
          asyncProfiler("event=" + event + ",interval=" + micros + "us"));
    }
    profilers.put("nothing (the noise)", null);

    workers = new Worker[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
      workers[i] = new Worker();
      workers[i].start();
    }
    Thread.sleep(5000); // until everything is compiled
    Map<String, Row> rows = new LinkedHashMap<>();
    profilers.keySet().forEach(name -> rows.put(name, new Row()));
    List<String> order = new ArrayList<>(profilers.keySet());
    for (int round = 0; round < rounds; round++) {
      java.util.Collections.shuffle(order, new Random(round));
      for (String name : order) {
        measure(rows.get(name), profilers.get(name));
      }
    }
    for (Worker worker : workers) {
      worker.stop = true;
    }
    print(rows);
    System.exit(0);
  }

  private static Profiler spanprof(String options) {
    return new Profiler() {
      @Override
      public void start(File file) throws Exception {
        JavaProfiler.getInstance().execute("start,jfr,file=" + file + "," + options);
      }

      @Override
      public void stop() throws Exception {
        JavaProfiler.getInstance().execute("stop");
      }
    };
  }

  private static Profiler asyncProfiler(String options) {
    return new Profiler() {
      @Override
      public void start(File file) throws Exception {
        AsyncProfiler.getInstance().execute("start,jfr,file=" + file + "," + options);
      }

      @Override
      public void stop() throws Exception {
        AsyncProfiler.getInstance().execute("stop");
      }
    };
  }

  private static void measure(Row row, Profiler profiler) throws Exception {
    double[] without = window();
    File file = File.createTempFile("overhead", ".jfr");
    if (profiler != null) {
      profiler.start(file);
    }
    double[] with = window();
    if (profiler != null) {
      profiler.stop();
      count(file, row);
    }
    file.delete();
    row.ratios.add(with[0] / without[0]);
    row.others.add(with[1] - without[1]);
    row.cpuSeconds += with[2];
  }

  /** Work for a second of the workers' CPU time; others' CPU seconds in a second; workers' CPU. */
  private static double[] window() throws Exception {
    var threads = ManagementFactory.getThreadMXBean();
    var process = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    long done = 0;
    long cpu = 0;
    for (Worker worker : workers) {
      done -= worker.done;
      cpu -= threads.getThreadCpuTime(worker.getId());
    }
    long processCpu = -process.getProcessCpuTime();
    long start = System.nanoTime();
    Thread.sleep(TimeUnit.NANOSECONDS.toMillis(WINDOW_NS));
    for (Worker worker : workers) {
      cpu += threads.getThreadCpuTime(worker.getId());
      done += worker.done;
    }
    processCpu += process.getProcessCpuTime();
    double seconds = (System.nanoTime() - start) / 1e9;
    return new double[] {done / (cpu / 1e9), (processCpu - cpu) / 1e9 / seconds, cpu / 1e9};
  }

  private static void count(File file, Row row) throws Exception {
    row.bytes += file.length();
    try (RecordingFile recording = new RecordingFile(file.toPath())) {
      while (recording.hasMoreEvents()) {
        RecordedEvent event = recording.readEvent();
        if (event.getEventType().getName().equals("jdk.ExecutionSample")) {
          row.samples++;
        }
      }
    }
  }

  private static void print(Map<String, Row> rows) {
    System.out.println("| Sampling | work for CPU time, on/off: median (quartiles) | other threads' CPU,"
        + " % of a core | samples per CPU second | CPU us per sample, of the worker | JFR bytes per sample, all in |");
    System.out.println("|---|---|---|---|---|---|");
    rows.forEach((name, row) -> {
      double ratio = quantile(row.ratios, 0.5);
      double rate = row.samples / row.cpuSeconds;
      System.out.println(String.format(Locale.ROOT,
          "| %s | %.4f (%.4f-%.4f) | %.2f | %.0f | %s | %s |", name, ratio,
          quantile(row.ratios, 0.25), quantile(row.ratios, 0.75),
          100 * quantile(row.others, 0.5), rate,
          row.samples == 0 ? "" : String.format(Locale.ROOT, "%.1f", (1 / ratio - 1) / rate * 1e6),
          row.samples == 0 ? "" : String.format(Locale.ROOT, "%.1f",
              (double) row.bytes / row.samples)));
    });
  }

  private static double quantile(List<Double> values, double at) {
    List<Double> sorted = new ArrayList<>(values);
    sorted.sort(null);
    return sorted.get((int) Math.min(sorted.size() - 1, Math.floor(at * sorted.size())));
  }
}
