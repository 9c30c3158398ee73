package io.spanprof.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The span of a sample is the one that the code in its stack ran under. */
class SpanTest {
  private static final long SAMPLES = Long.getLong("span.samples", 10_000);
  private static final List<String> KEEP_METHODS = List.of("-XX:CompileCommand=quiet",
      "-XX:CompileCommand=dontinline," + Spans.class.getName() + "::under*",
      "-XX:CompileCommand=dontinline," + Spans.class.getName() + "::bare");

  @ParameterizedTest
  @CsvSource({
    "threads, profiler, ''",
    "threads, otel, ''",
    "pool, profiler, ''",
    "pool, otel, ''",
    "virtual, profiler, ''",
    "virtual, otel, ''",
    "calls, profiler, -Xint",
    "calls, otel, mixed",
    "calls, profiler, mixed -XX:TieredStopAtLevel=1",
    "calls, profiler, mixed -XX:-TieredCompilation",
  })
  void samplesCarryTheirSpan(String kind, String storage, String compilers) throws Exception {
    boolean virtual = kind.equals("virtual");
    assumeTrue(!virtual || Runtime.version().feature() >= 21, "this JDK has no virtual threads");
    RecordedSpans all = new RecordedSpans();
    for (int seconds = 4; all.right < SAMPLES && seconds < 300; seconds *= 2) {
      File file = AgentProcess.temporaryFile(".jfr");
      String options = "start,cpu=200us,wall=1ms,threads=4,ctxstorage=" + storage + ",jfr,file=" + file
          + (virtual ? ",vthreads=on" : "");
      AgentProcess process = AgentProcess.start(options, jvmOptions(compilers), SpanWorkload.class,
          kind, Integer.toString(seconds));
      process.awaitSuccess();
      assertEquals("", process.output());
      all = RecordedSpans.read(file);
      file.delete();
      System.out.println(kind + " " + storage + " " + compilers + ": " + all);
      assertEquals("{}", all.wrong.toString(), all.toString());
    }
    assertTrue(all.right >= SAMPLES, all.toString());
    assertTrue(all.bare > 0, all.toString());
    if (virtual) {
      // Where the compiler has inlined the switch into our code, its debug information may take an
      // instruction between a switch and its hook for the code before it.
      assertTrue(all.without * 50 < all.right, all.toString());
    } else {
      assertEquals(0, all.without + all.switching, all.toString());
    }
  }

  /**
   * "mixed": every other method is interpreted for ever, so that compiled and interpreted code call
   * each other all the time. There the stack has no frames for a few instructions, and what earlier
   * calls have left on it looks like some.
   */
  private static List<String> jvmOptions(String compilers) {
    List<String> options = new ArrayList<>(KEEP_METHODS);
    for (String option : compilers.split(" ")) {
      if (option.equals("mixed")) {
        for (int number = 1; number < Spans.COUNT; number += 2) {
          options.add("-XX:CompileCommand=exclude," + Spans.class.getName() + "::under" + number);
        }
      } else if (!option.isEmpty()) {
        options.add(option);
      }
    }
    return options;
  }
}
