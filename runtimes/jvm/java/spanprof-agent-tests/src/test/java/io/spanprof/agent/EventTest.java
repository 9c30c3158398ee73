package io.spanprof.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import jdk.jfr.consumer.RecordedEvent;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Allocations, waits for locks, names and lines, in one recording of {@link EventWorkload}. */
class EventTest {
  private static File file;

  @BeforeAll
  static void record() throws Exception {
    file = AgentProcess.temporaryFile(".jfr");
    AgentProcess process = AgentProcess.start(
        "start,cpu=1ms,wall=5ms,alloc=32k,lock=10us,jfr,file=" + file, List.of(),
        EventWorkload.class, "4");
    process.awaitSuccess();
    assertEquals("", process.output());
  }

  @Test
  void allocationsHaveClassSizeStackAndSpan() throws Exception {
    List<RecordedEvent> parcels = Samples.read(file, "jdk.ObjectAllocationSample").stream()
        .filter(event -> Samples.hasFrame(event, "allocateParcels")).collect(Collectors.toList());
    assertTrue(parcels.size() > 10, "only " + parcels.size());
    Set<String> classes = new TreeSet<>();
    for (RecordedEvent event : parcels) {
      assertEquals(EventWorkload.ALLOCATING, Samples.span(event), event.toString());
      assertTrue(event.getLong("weight") > 0, event.toString());
      classes.add(event.getStackTrace().getFrames().get(0).getMethod().getName());
    }
    assertTrue(classes.contains(EventWorkload.Parcel.class.getName()), classes.toString());
    assertTrue(classes.contains("long[]"), classes.toString());
  }

  @Test
  void waitsForMonitorsAndLocksHaveDurationStackAndSpan() throws Exception {
    List<RecordedEvent> waits = Samples.read(file, "jdk.JavaMonitorEnter");
    long monitors = 0;
    long locks = 0;
    for (RecordedEvent event : waits) {
      if (Samples.hasFrame(event, "holdMonitor")) {
        assertEquals(EventWorkload.SYNCHRONIZED, Samples.span(event), event.toString());
        assertTrue(event.getDuration().toNanos() >= 10_000, event.toString());
        monitors++;
      } else if (Samples.hasFrame(event, "holdLock")) {
        assertEquals(EventWorkload.LOCKED, Samples.span(event), event.toString());
        locks++;
      }
    }
    assertTrue(monitors > 0, waits.size() + " waits, none for the monitor");
    assertTrue(locks > 0, waits.size() + " waits, none for the lock");
  }

  @Test
  void threadsHaveTheirNamesOfTheTime() throws Exception {
    List<RecordedEvent> samples = Samples.read(file, "jdk.ExecutionSample");
    Set<String> names =
        samples.stream().map(Samples::threadName).collect(Collectors.toCollection(TreeSet::new));
    assertTrue(names.contains("main under another name"), names.toString());
    assertTrue(names.contains("a thread whose name is longer than the kernel keeps 1"),
        names.toString());
    // What the thread of main becomes when main has returned, and what the kernel calls it before.
    Set<String> working = samples.stream().filter(event -> Samples.hasFrame(event, "bare"))
        .map(Samples::threadName).collect(Collectors.toCollection(TreeSet::new));
    assertFalse(working.contains("DestroyJavaVM"), working.toString());
    assertFalse(working.contains("java"), working.toString());
    // Threads of the JVM itself are sampled too: compilers at least.
    assertTrue(names.stream().anyMatch(name -> name.contains("Compiler")), names.toString());
  }

  @Test
  void javaFramesHaveLinesAndStandOnNativeOnes() throws Exception {
    long withLine = 0;
    long wholeStacks = 0;
    List<RecordedEvent> samples = Samples.read(file, "jdk.ExecutionSample").stream()
        .filter(event -> Samples.hasFrame(event, "burn")).collect(Collectors.toList());
    for (RecordedEvent event : samples) {
      var frames = event.getStackTrace().getFrames();
      if (frames.stream().anyMatch(
          frame -> frame.getMethod().getName().equals("burn") && frame.getLineNumber() > 1)) {
        withLine++;
      }
      if (frames.stream().anyMatch(frame -> frame.getMethod().getName().startsWith("JavaCalls::"))) {
        wholeStacks++;
      }
    }
    assertTrue(samples.size() > 100, "only " + samples.size());
    assertTrue(withLine * 100 >= samples.size() * 95, withLine + " of " + samples.size());
    assertTrue(wholeStacks * 100 >= samples.size() * 95, wholeStacks + " of " + samples.size());
  }

  @Test
  void wallSamplesSayWhatAThreadWaitsFor() throws Exception {
    List<RecordedEvent> samples = Samples.read(file, "spanprof.WallSample");
    assertStates(samples, "waitOn", "STATE_IN_OBJECT_WAIT");
    assertStates(samples, "blockOn", "STATE_BLOCKED_ON_MONITOR_ENTER");
    assertStates(samples, "bare", "STATE_RUNNABLE");
  }

  private static void assertStates(List<RecordedEvent> samples, String method, String state) {
    List<RecordedEvent> there = samples.stream().filter(event -> Samples.hasFrame(event, method))
        .collect(Collectors.toList());
    long right = there.stream().filter(event -> state.equals(event.getString("state"))).count();
    // It is on its way there, or back, in some.
    assertTrue(right > 5 && right * 10 >= there.size() * 9L,
        method + ": " + right + " of " + there.size() + " are " + state);
  }

  @Test
  void endpointsAreBoundLate() throws Exception {
    String table = AgentProcess.run(AgentProcess.COMMAND, "report", "--type", "allocation", "--by",
        "endpoint", file.toString());
    assertTrue(table.contains("/parcels"), table);
  }
}
