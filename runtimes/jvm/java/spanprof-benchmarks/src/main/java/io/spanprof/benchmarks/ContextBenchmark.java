package io.spanprof.benchmarks;

import io.spanprof.ContextScope;
import io.spanprof.JavaProfiler;
import io.spanprof.ThreadContext;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** What the calls cost that tracers make. Initialised, not started: contexts are published. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class ContextBenchmark {
  /** "none": not initialised. */
  @Param({"profiler", "otel"})
  public String storage;

  private ThreadContext context;
  private JavaProfiler profiler;
  private int tag;
  private long span;
  private final long root = 0x123456789ABCDEF0L;

  @Setup
  public void initialise() throws IOException {
    profiler = JavaProfiler.getInstance();
    if (!storage.equals("none")) {
      profiler.execute("attributes=http.route;tenant,log=none,ctxstorage=" + storage);
    }
    context = ThreadContext.current();
    context.put(1, root);
    tag = profiler.internTag("/cart");
  }

  /** The span changes each time, the local root stays: as a tracer's calls in one request. */
  @Benchmark
  public long put() {
    return context.put(++span, root);
  }

  @Benchmark
  public long putOtherRoot() {
    return context.put(++span, span);
  }

  @Benchmark
  public long putOtel() {
    return context.putOtel(7, 8, ++span, root);
  }

  @Benchmark
  public void setContext() {
    profiler.setContext(++span, root);
  }

  @Benchmark
  public boolean tagById() {
    return context.putCustom(0, tag);
  }

  @Benchmark
  public boolean tagByText() {
    return context.setTag(0, "/cart");
  }

  @Benchmark
  public void clear() {
    context.clear();
  }

  @Benchmark
  public void scope() {
    try (ContextScope scope = context.open(++span, root)) {
      // nothing
    }
  }
}
