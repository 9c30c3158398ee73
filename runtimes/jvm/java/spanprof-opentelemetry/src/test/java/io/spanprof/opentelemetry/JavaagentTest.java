package io.spanprof.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** The OpenTelemetry javaagent hides its API from the application: we say so and stand aside. */
class JavaagentTest {
  /** An application that uses OpenTelemetry's contexts. */
  public static final class Application {
    public static void main(String[] arguments) {
      for (int i = 0; i < 3; i++) {
        try (Scope scope = Context.current().makeCurrent()) {
          System.out.println("runs");
        }
      }
    }
  }

  @Test
  void isRefusedWithTheReasonOnceAndTheApplicationRuns() throws Exception {
    String output = run("-javaagent:" + System.getProperty("javaagent"));
    assertEquals(2, output.split("spans are not published", -1).length, output);
    assertTrue(output.contains("javaagent"), output);
    assertEquals(4, output.split("runs", -1).length, output);
  }

  @Test
  void withoutItNothingIsSaid() throws Exception {
    String output = run("-Dno.agent");
    assertFalse(output.contains("spans are not published"), output);
    assertEquals(4, output.split("runs", -1).length, output);
  }

  private static String run(String option) throws Exception {
    Process process = new ProcessBuilder(Arrays.asList(
            System.getProperty("java.home") + "/bin/java", option, "-Dotel.traces.exporter=none",
            "-Dotel.metrics.exporter=none", "-Dotel.logs.exporter=none", "-cp",
            System.getProperty("java.class.path"),
            Application.class.getName()))
        .redirectErrorStream(true).start();
    ByteArrayOutputStream output = new ByteArrayOutputStream();
    try (InputStream in = process.getInputStream()) {
      byte[] buffer = new byte[4096];
      for (int count; (count = in.read(buffer)) >= 0; ) {
        output.write(buffer, 0, count);
      }
    }
    assertEquals(0, process.waitFor(), output.toString());
    return output.toString();
  }
}
