package io.spanprof.agent;

import java.io.File;
import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedObject;
import jdk.jfr.consumer.RecordingFile;

/** Compares the spans of a recording's samples with the methods in their stacks. */
final class RecordedSpans {
  long right;
  long switching; // in a method of a span, and no span, while its virtual thread is switched
  long without; // in a method of a span, and no span
  long bare;
  long elsewhere; // in none of the methods
  final Map<String, Long> wrong = new TreeMap<>();
  final Map<String, Long> roots = new TreeMap<>(); // the outermost frames

  static RecordedSpans read(File file) throws IOException {
    RecordedSpans result = new RecordedSpans();
    try (RecordingFile recording = new RecordingFile(file.toPath())) {
      while (recording.hasMoreEvents()) {
        RecordedEvent event = recording.readEvent();
        String type = event.getEventType().getName();
        if (type.equals("jdk.ExecutionSample") || type.equals("spanprof.WallSample")) {
          result.take(event);
        }
      }
    }
    return result;
  }

  private void take(RecordedEvent event) {
    RecordedObject context = event.getValue("context");
    long span = context == null ? 0 : context.getLong("spanId");
    long root = context == null ? 0 : context.getLong("localRootSpanId");
    String method = event.getStackTrace() == null ? null : methodOf(event);
    if (event.getStackTrace() != null && !event.getStackTrace().getFrames().isEmpty()) {
      var frames = event.getStackTrace().getFrames();
      roots.merge(frames.get(frames.size() - 1).getMethod().getName(), 1L, Long::sum);
    }
    if (method == null) {
      elsewhere++;
    } else if (method.equals("bare")) {
      bare++;
      if (span != 0) {
        wrong.merge("bare shows " + Long.toHexString(span), 1L, Long::sum);
      }
    } else if (span == 0) {
      if (isSwitching(event)) {
        switching++;
      } else {
        without++;
      }
    } else {
      int number = Integer.parseInt(method.substring("under".length()));
      if (span == Spans.id(number) && root == Spans.root(number)) {
        right++;
      } else {
        wrong.merge(method + " shows " + Long.toHexString(span) + " of " + Long.toHexString(root), 1L,
            Long::sum);
      }
    }
  }

  /** Whether the thread is between its context's being put away and its being put back. */
  private static boolean isSwitching(RecordedEvent event) {
    for (RecordedFrame frame : event.getStackTrace().getFrames()) {
      if (frame.getMethod().getType().getName().equals("java.lang.VirtualThread")
          && frame.getMethod().getName().equals("yieldContinuation")) {
        return true;
      }
    }
    return false;
  }

  private static String methodOf(RecordedEvent event) {
    for (RecordedFrame frame : event.getStackTrace().getFrames()) {
      String name = frame.getMethod().getName();
      boolean ours = frame.getMethod().getType().getName().equals(Spans.class.getName());
      if (ours && (name.equals("bare") || name.matches("under[0-9]+"))) {
        return name;
      }
    }
    return null;
  }

  @Override
  public String toString() {
    return "right " + right + ", bare " + bare + ", switching " + switching + ", without " + without + ", elsewhere " + elsewhere
        + ", wrong " + wrong + ", roots " + roots;
  }
}
