package io.spanprof;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** With latency=on the library measures each write, so each must go there. */
class LatencyMeasuredTest {
  @Test
  void contextsAreKeptAllTheSame() throws Exception {
    JavaProfiler.getInstance().execute("ctxstorage=otel,latency=on,attributes=a,log=none");
    ThreadContext context = ThreadContext.current();
    for (int i = 1; i < 1000; i++) {
      assertEquals(RecordWriter.checksum(i, i), context.putOtel(1, 2, i, i));
      assertEquals(i, LibraryView.ofThisThread().getSpanId());
      try (ContextScope scope = context.open(-i, -i)) {
        context.setTag(0, "x");
        assertEquals(-i, LibraryView.ofThisThread().getSpanId());
      }
      assertEquals(i, LibraryView.ofThisThread().getSpanId());
      assertEquals(0, LibraryView.ofThisThread().getTagId(0));
    }
  }
}
