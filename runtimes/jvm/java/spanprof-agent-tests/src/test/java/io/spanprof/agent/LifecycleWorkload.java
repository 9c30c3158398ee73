package io.spanprof.agent;

import io.spanprof.JavaProfiler;
import java.io.File;

/** A program that starts and stops its own profiler: {@code LifecycleWorkload WHAT [FILE]}. */
public final class LifecycleWorkload {
  private LifecycleWorkload() {}

  public static void main(String[] arguments) throws Exception {
    switch (arguments[0]) {
      case "run":
        System.out.println("running");
        burn(Long.parseLong(arguments[1]) * 1000);
        System.out.println("done");
        break;
      case "own":
        own(arguments[1]);
        break;
      case "loop":
        loop(arguments[1]);
        break;
      case "exit":
        burn(500);
        System.exit(3);
        break;
      case "halt":
        burn(500);
        Runtime.getRuntime().halt(4);
        break;
      default:
        throw new IllegalArgumentException(arguments[0]);
    }
  }

  static void burn(long milliseconds) {
    long end = System.nanoTime() + milliseconds * 1_000_000;
    while (System.nanoTime() < end) {
      Spans.bare(() -> Spans.burn(10_000));
    }
  }

  private static void own(String file) throws Exception {
    JavaProfiler profiler = JavaProfiler.getInstance();
    burn(300); // compiled before the agent is there
    profiler.execute("start,cpu=1ms,jfr,file=" + file);
    expect(profiler.execute("status").startsWith("recording"), "status while recording");
    try {
      profiler.execute("start,cpu=1ms");
      expect(false, "a second start is refused");
    } catch (Exception refused) {
      expect(refused.getMessage().contains("already"), refused.getMessage());
    }
    burn(500);
    profiler.execute("dump,file=" + file + ".dump.jfr");
    expect(new File(file + ".dump.jfr").length() > 0, "a dump");
    burn(500);
    profiler.execute("stop");
    expect(new File(file).length() > 0, "a file");
    expect(profiler.execute("status").startsWith("not recording"), "status after stop");
  }

  private static void loop(String file) throws Exception {
    JavaProfiler profiler = JavaProfiler.getInstance();
    for (int i = 0; i < 30; i++) {
      profiler.execute("start,cpu=500us,wall=1ms,alloc=16k,lock=1us,jfr,file=" + file);
      burn(30);
      profiler.execute("stop");
      new File(file).delete();
    }
    System.out.println("done");
  }

  private static void expect(boolean holds, String what) {
    if (!holds) {
      System.out.println("not so: " + what);
      System.exit(1);
    }
  }
}
