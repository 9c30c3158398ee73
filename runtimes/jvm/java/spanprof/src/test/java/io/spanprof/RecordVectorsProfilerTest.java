package io.spanprof;

import org.junit.jupiter.api.Test;

class RecordVectorsProfilerTest {
  @Test
  void theJavaWriterLeavesTheSameBytesAsTheNativeOne() throws Exception {
    JavaProfiler.getInstance().execute("ctxstorage=profiler,attributes=a;b,log=none");
    new RecordVectors(false).run();
  }
}
