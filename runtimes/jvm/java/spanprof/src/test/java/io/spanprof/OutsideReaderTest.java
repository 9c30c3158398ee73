package io.spanprof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** The command line looks at this JVM while Java code writes. */
class OutsideReaderTest {
  private static final Pattern FIELD = Pattern.compile("\"(\\w+|http[.]route)\": \"?([^\",}\\s]+)");

  @Test
  void anotherProcessSeesWholeContextsWhileJavaWrites() throws Exception {
    String command = System.getProperty("spanprof.command", "");
    Assumptions.assumeTrue(
        Files.isExecutable(Paths.get(command)), "there is no command at '" + command + "'");
    JavaProfiler.getInstance().execute("ctxstorage=otel,attributes=http.route,log=none");
    AtomicBoolean stop = new AtomicBoolean();
    AtomicInteger threadId = new AtomicInteger();
    CountDownLatch started = new CountDownLatch(1);
    Thread writer =
        new Thread(
            () -> {
              ThreadContext context = ThreadContext.current();
              context.setTag(0, "/cart");
              context.putOtel(3, 5, 1, -1);
              threadId.set(Native.threadId());
              started.countDown();
              for (long i = 1; !stop.get(); i++) {
                context.putOtel(i * 3, i * 5, i, -i);
                // A reader takes longer than a write: of a thread that does nothing else it would
                // hardly ever see one whole context.
                if (i % 100 == 0) spinFor(50_000);
              }
            });
    writer.start();
    started.await();
    String pid = Paths.get("/proc/self").toRealPath().getFileName().toString();
    int seen = 0;
    long last = 0;
    for (int i = 0; i < 200 && seen < 20; i++) {
      ChildJvm run = ChildJvm.run(Arrays.asList(command, "context", pid, "--json"));
      assertEquals(0, run.exitCode, run.output);
      if (isSeen(run.output, threadId.get())) seen++;
    }
    stop.set(true);
    writer.join();
    assertTrue(seen >= 20, "seen only " + seen + " times");
  }

  private static void spinFor(long nanoseconds) {
    long end = System.nanoTime() + nanoseconds;
    while (System.nanoTime() < end) Thread.yield();
  }

  /** False: the thread was changing its context each time that the reader looked. */
  private static boolean isSeen(String json, int threadId) {
    int at = json.indexOf("\"tid\": " + threadId + ",");
    if (at < 0) return false;
    String thread = json.substring(at, json.indexOf("\"source\"", at));
    String trace = null;
    String span = null;
    String root = null;
    String route = null;
    for (Matcher field = FIELD.matcher(thread); field.find(); ) {
      if (field.group(1).equals("trace_id")) trace = field.group(2);
      if (field.group(1).equals("span_id")) span = field.group(2);
      if (field.group(1).equals("root_span_id")) root = field.group(2);
      if (field.group(1).equals("http.route")) route = field.group(2);
    }
    long i = Long.parseUnsignedLong(span, 16);
    assertEquals(String.format("%016x%016x", i * 3, i * 5), trace, thread);
    assertEquals(String.format("%016x", -i), root, thread);
    assertEquals("/cart", route, thread);
    return true;
  }
}
