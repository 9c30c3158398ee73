package io.spanprof.benchmarks;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * The same calls of Datadog's com.datadoghq:ddprof. It has no ThreadContext to keep: each call
 * looks it up. Compare setContext with setContext. The profiler is not started, which it need not
 * be for its contexts to be stored.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class PeerBenchmark {
  private com.datadoghq.profiler.JavaProfiler profiler;
  private com.datadoghq.profiler.ContextSetter tags;
  private int tag;
  private long span;
  private final long root = 0x123456789ABCDEF0L;

  @Setup
  public void initialise() throws Exception {
    profiler = com.datadoghq.profiler.JavaProfiler.getInstance();
    tags =
        new com.datadoghq.profiler.ContextSetter(
            profiler, java.util.Arrays.asList("http.route", "tenant"));
    tag = tags.encode("/cart");
  }

  @Benchmark
  public void setContext() {
    profiler.setContext(++span, root);
  }

  @Benchmark
  public void clearContext() {
    profiler.clearContext();
  }

  @Benchmark
  public boolean tagById() {
    return tags.setContextValue(0, tag);
  }

  @Benchmark
  public boolean tagByText() {
    return tags.setContextValue(0, "/cart");
  }
}
