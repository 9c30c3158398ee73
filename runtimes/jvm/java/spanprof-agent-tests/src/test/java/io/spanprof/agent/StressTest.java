package io.spanprof.agent;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A program that does everything that is hard on a profiler ends as it would without one. */
class StressTest {
  private static final String SECONDS = System.getProperty("stress.seconds", "15");

  @ParameterizedTest
  @ValueSource(strings = {"-XX:+UseG1GC", "-XX:+UseZGC", "-XX:+UseSerialGC"})
  void nothingCrashesAndNothingGrows(String collector) throws Exception {
    File file = AgentProcess.temporaryFile(".jfr");
    AgentProcess process = AgentProcess.start("ctxstorage=otel",
        List.of(collector, "-Xmx192m", "-XX:MaxMetaspaceSize=128m",
            "-javaagent:" + RedefinitionAgent.jar()),
        StressWorkload.class, SECONDS, file.toString());
    process.awaitSuccess();
    file.delete();
    String output = process.output();
    assertTrue(output.contains("done"), output);
    Matcher growth = Pattern.compile("grew (-?[0-9]+) KiB").matcher(output);
    assertTrue(growth.find(), output);
    System.out.println(collector + ": " + output.trim());
    // The heap may not have been used up at the first look; more than that would be ours.
    assertTrue(Long.parseLong(growth.group(1)) < 300 * 1024, output);
  }
}
