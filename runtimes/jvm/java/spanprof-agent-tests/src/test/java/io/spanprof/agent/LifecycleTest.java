package io.spanprof.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Starting, stopping and ending, and what is left when it goes wrong. */
class LifecycleTest {
  @Test
  void aProgramProfilesItself() throws Exception {
    File file = AgentProcess.temporaryFile(".jfr");
    AgentProcess process =
        AgentProcess.start(null, List.of(), LifecycleWorkload.class, "own", file.toString());
    process.awaitSuccess();
    for (File each : List.of(file, new File(file + ".dump.jfr"))) {
      assertTrue(Samples.read(each, "jdk.ExecutionSample").stream()
          .anyMatch(event -> Samples.hasFrame(event, "bare")), each.toString());
      each.delete();
    }
  }

  @Test
  void startAndStopInALoop() throws Exception {
    File file = AgentProcess.temporaryFile(".jfr");
    AgentProcess process =
        AgentProcess.start(null, List.of(), LifecycleWorkload.class, "loop", file.toString());
    process.awaitSuccess();
    assertEquals("done\n", process.output());
  }

  @Test
  void theLastProfileIsWrittenWhenTheProgramExits() throws Exception {
    File file = AgentProcess.temporaryFile(".jfr");
    AgentProcess process = AgentProcess.start("start,cpu=1ms,jfr,file=" + file, List.of(),
        LifecycleWorkload.class, "exit");
    assertEquals(3, process.process.waitFor());
    assertTrue(Samples.read(file, "jdk.ExecutionSample").size() > 50);
    file.delete();
  }

  @Test
  void badOptionsAreToldAndTheProgramRuns() throws Exception {
    AgentProcess process = AgentProcess.start("start,cpu=fast,file=x.jfr", List.of(),
        LifecycleWorkload.class, "run", "0");
    process.awaitSuccess();
    assertTrue(process.output().contains("cpu=") && process.output().contains("fast"),
        process.output());
    assertTrue(process.output().contains("done"), process.output());
  }

  @Test
  void aFileThatCannotBeWrittenIsToldAndTheProgramRuns() throws Exception {
    AgentProcess process = AgentProcess.start("start,cpu=1ms,file=/nowhere/at/all.jfr", List.of(),
        LifecycleWorkload.class, "run", "0");
    process.awaitSuccess();
    assertTrue(process.output().contains("/nowhere/at"), process.output());
    assertTrue(process.output().contains("done"), process.output());
  }

  @Test
  void aKilledProgramLeavesWhatWasFinished() throws Exception {
    File file = AgentProcess.temporaryFile(".jfr");
    AgentProcess process = AgentProcess.start("start,cpu=1ms,jfr,file=" + file, List.of(),
        LifecycleWorkload.class, "run", "60");
    process.awaitText("running");
    // Long enough for a part of the recording to be put aside.
    File folded = AgentProcess.temporaryFile(".folded");
    File[] parts = {};
    while (parts.length == 0) {
      Thread.sleep(100);
      parts = file.getParentFile().listFiles(
          (folder, name) -> name.startsWith(file.getName()) && !name.equals(file.getName()));
    }
    Thread.sleep(1500);
    process.kill();
    AgentProcess.run(AgentProcess.COMMAND, "export", file.toString(), "-o", folded.toString());
    String stacks = new String(java.nio.file.Files.readAllBytes(folded.toPath()));
    assertTrue(stacks.contains("LifecycleWorkload.burn"), stacks);
    // The JDK's own reader takes the file as it is.
    if (file.length() > 0) {
      assertTrue(Samples.read(file, "jdk.ExecutionSample").size() >= 0);
    }
    for (File part : parts) {
      part.delete();
    }
    file.delete();
    folded.delete();
  }

  @Test
  void aStandardToolDrawsTheFlameGraph() throws Exception {
    File file = AgentProcess.temporaryFile(".jfr");
    AgentProcess process = AgentProcess.start("start,cpu=1ms,jfr,file=" + file, List.of(),
        LifecycleWorkload.class, "exit");
    assertEquals(3, process.process.waitFor());
    String page = convert(file, "html");
    assertTrue(page.startsWith("<!DOCTYPE html>") && page.length() > 10_000, page);
    // The page's names are packed; these are what it is made of.
    String stacks = convert(file, "collapsed");
    assertTrue(stacks.contains("LifecycleWorkload.burn"), stacks);
    file.delete();
  }

  private static String convert(File file, String format) throws Exception {
    File converted = AgentProcess.temporaryFile("." + format);
    AgentProcess.run(System.getProperty("java.home") + "/bin/java", "-cp",
        System.getProperty("java.class.path"), "one.convert.Main", "-o", format,
        file.toString(), converted.toString());
    String text = new String(java.nio.file.Files.readAllBytes(converted.toPath()));
    converted.delete();
    return text;
  }

  @Test
  void everyOtherFormatByItsExtension() throws Exception {
    for (String suffix : List.of(".pb.gz", ".otlp", ".folded", ".html")) {
      File file = AgentProcess.temporaryFile(suffix);
      AgentProcess process = AgentProcess.start("start,cpu=1ms,file=" + file, List.of(),
          LifecycleWorkload.class, "exit");
      assertEquals(3, process.process.waitFor());
      assertTrue(file.length() > 100, suffix);
      file.delete();
    }
  }

  @Test
  void bothWalkersAndEveryCollector() throws Exception {
    for (String walker : List.of("hotspot", "asgct")) {
      for (String collector : List.of("-XX:+UseG1GC", "-XX:+UseZGC", "-XX:+UseSerialGC", "-XX:+UseParallelGC")) {
        File file = AgentProcess.temporaryFile(".jfr");
        AgentProcess process = AgentProcess.start(
            "start,cpu=1ms,walker=" + walker + ",jfr,file=" + file, List.of(collector, "-Xmx256m"),
            EventWorkload.class, "1");
        process.awaitSuccess();
        assertEquals("", process.output(), walker + " " + collector);
        assertTrue(Samples.read(file, "jdk.ExecutionSample").stream()
            .anyMatch(event -> Samples.hasFrame(event, "holdLock")), walker + " " + collector);
        file.delete();
      }
    }
  }
}
