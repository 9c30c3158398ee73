package io.spanprof;

import org.junit.jupiter.api.Test;

class RecordVectorsOtelTest {
  @Test
  void theJavaWriterLeavesTheSameBytesAsTheNativeOne() throws Exception {
    JavaProfiler.getInstance().execute("ctxstorage=otel,attributes=a;b,log=none");
    new RecordVectors(true).run();
  }
}
