package io.spanprof.agent;

import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.stream.Collectors;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedObject;
import jdk.jfr.consumer.RecordingFile;

/** What the tests ask of a recording. */
final class Samples {
  private Samples() {}

  static List<RecordedEvent> read(File file, String type) throws IOException {
    return RecordingFile.readAllEvents(file.toPath()).stream()
        .filter(event -> event.getEventType().getName().equals(type)).collect(Collectors.toList());
  }

  static boolean hasFrame(RecordedEvent event, String method) {
    return event.getStackTrace() != null && event.getStackTrace().getFrames().stream()
        .anyMatch(frame -> frame.getMethod().getName().equals(method));
  }

  static long span(RecordedEvent event) {
    RecordedObject context = event.getValue("context");
    return context == null ? 0 : context.getLong("spanId");
  }

  static String threadName(RecordedEvent event) {
    return event.hasField("sampledThread") ? event.getThread("sampledThread").getOSName()
        : event.getThread().getOSName();
  }
}
