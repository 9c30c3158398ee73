package io.spanprof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class OtelModeTest extends ContextContract {
  @BeforeAll
  static void initialise() throws Exception {
    JavaProfiler.getInstance().execute("ctxstorage=otel," + OPTIONS);
  }

  @Test
  void theModeIsOtel() {
    assertTrue(ThreadContext.isOtelMode());
  }

  @Test
  void anotherThreadReadsWholeContextsWhileJavaWritesAtFullSpeed() throws Exception {
    AtomicBoolean stop = new AtomicBoolean();
    AtomicInteger threadId = new AtomicInteger();
    CountDownLatch started = new CountDownLatch(1);
    Thread writer =
        new Thread(
            () -> {
              threadId.set(Native.threadId());
              ThreadContext context = ThreadContext.current();
              context.putOtel(3, 5, 1, -1);
              started.countDown();
              for (long i = 1; !stop.get(); i++) context.putOtel(i * 3, i * 5, i, -i);
            });
    writer.start();
    started.await();
    long last = 0;
    for (int changes = 0; changes < 2000; ) {
      ContextSnapshot seen = LibraryView.ofThread(threadId.get());
      if (seen == null || seen.getSpanId() == last) continue;
      long i = seen.getSpanId();
      assertEquals(-i, seen.getRootSpanId());
      assertEquals(i * 3, seen.getTraceIdHigh());
      assertEquals(i * 5, seen.getTraceIdLow());
      changes++;
      last = i;
    }
    stop.set(true);
    writer.join();
  }
}
