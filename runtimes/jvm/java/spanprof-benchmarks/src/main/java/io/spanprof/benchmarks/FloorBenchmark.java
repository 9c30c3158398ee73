package io.spanprof.benchmarks;

import io.spanprof.JavaProfiler;
import io.spanprof.NativeCall;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** What the pieces cost by themselves. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class FloorBenchmark {
  private static final VarHandle LONG =
      MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

  @Param({"profiler", "otel"})
  public String storage;

  private final ByteBuffer buffer = ByteBuffer.allocateDirect(128).alignedSlice(64);
  private final ThreadLocal<ByteBuffer> local = ThreadLocal.withInitial(() -> buffer);
  private long span;

  @Setup
  public void initialise() throws Exception {
    JavaProfiler.getInstance()
        .execute("attributes=http.route;tenant,log=none,ctxstorage=" + storage);
  }

  @Benchmark
  public void emptyNativeCall() {
    NativeCall.empty();
  }

  @Benchmark
  public void putByNativeCall() {
    NativeCall.put(++span, 2);
  }

  /** Four release stores: checksum 0, span, root, checksum. */
  @Benchmark
  public void fourReleaseStores() {
    fourStores(buffer);
  }

  @Benchmark
  public void threadLocalAndFourReleaseStores() {
    fourStores(local.get());
  }

  private void fourStores(ByteBuffer to) {
    LONG.setRelease(to, 16, 0L);
    LONG.setRelease(to, 0, ++span);
    LONG.setRelease(to, 8, 2L);
    LONG.setRelease(to, 16, span * 0x9E3779B97F4A7C15L);
  }
}
