package io.spanprof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AbandonedWriteTest {
  @ParameterizedTest
  @ValueSource(strings = {"profiler", "otel"})
  void aWriteThatRanOutOfStackDoesNotLeaveTheThreadWithoutContext(String mode) throws Exception {
    // Interpreted: each store is a call that may find no stack. Compiled, a write is one frame.
    ChildJvm child =
        ChildJvm.run(
            StackOverflowProgram.class,
            "-Xint",
            "-Dspanprof.writer=java",
            "-Dtest.init=ctxstorage=" + mode + ",log=none");
    assertEquals(0, child.exitCode, child.output);
    int leftHalfDone = number(child, "left half done: ");
    assertTrue(leftHalfDone > 0, "no write was left in its middle: " + child.output);
    assertEquals(leftHalfDone, number(child, "abandoned: "), child.output);
    assertEquals(0, number(child, "refused: "), child.output);
    assertEquals(0, number(child, "torn: "), child.output);
  }

  private static int number(ChildJvm child, String name) {
    for (String line : child.output.split("\n")) {
      if (line.startsWith(name)) return Integer.parseInt(line.substring(name.length()).trim());
    }
    throw new AssertionError("no '" + name + "' in: " + child.output);
  }
}
