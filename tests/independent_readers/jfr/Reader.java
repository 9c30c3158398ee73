// Reads a JFR file with the JDK's own consumer, and prints a line of JSON for each sample.
//
//   java Reader.java profile.jfr

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import jdk.jfr.ValueDescriptor;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedObject;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingFile;

public final class Reader {
    private static final List<String> FIXED =
            List.of("spanId", "localRootSpanId", "traceId", "endpoint");

    public static void main(String[] arguments) throws Exception {
        try (RecordingFile file = new RecordingFile(Path.of(arguments[0]))) {
            while (file.hasMoreEvents()) {
                RecordedEvent event = file.readEvent();
                if (event.hasField("context") || event.hasField("spanId")) {
                    System.out.println(describe(event));
                }
            }
        }
    }

    private static String describe(RecordedEvent event) {
        String name = event.getEventType().getName();
        List<String> parts = new ArrayList<>();
        parts.add("\"event\":" + quote(name));
        parts.add("\"time_ns\":" + (event.getStartTime().getEpochSecond() * 1_000_000_000L
                + event.getStartTime().getNano()));
        boolean sampled = event.hasField("sampledThread");
        RecordedThread thread = event.getThread(sampled ? "sampledThread" : "eventThread");
        parts.add("\"thread\":" + (thread == null ? "null" : quote(thread.getOSName())));
        parts.add("\"tid\":" + (thread == null ? 0 : thread.getOSThreadId()));
        if (sampled && event.hasField("folded")) {
            parts.add("\"count\":" + event.getLong("weight"));
            parts.add("\"value\":" + event.getDuration("value").toNanos());
            parts.add("\"folded\":" + event.getBoolean("folded"));
        } else if (sampled) {
            RecordedObject value = event.getValue("value");
            parts.add("\"count\":" + event.getLong("weight"));
            parts.add("\"value\":" + value.getLong("nanoseconds"));
            parts.add("\"folded\":" + value.getBoolean("folded"));
        } else {
            parts.add("\"count\":" + event.getLong("samples"));
            parts.add("\"value\":" + (event.hasField("weight")
                    ? event.getLong("weight") : event.getDuration().toNanos()));
            parts.add("\"folded\":" + event.getBoolean("folded"));
        }
        RecordedObject context = event.hasField("context") ? event.getValue("context") : event;
        parts.add("\"context\":" + (context == null ? "null" : describeContext(context)));
        List<String> frames = new ArrayList<>();
        if (event.getStackTrace() != null) {
            for (RecordedFrame frame : event.getStackTrace().getFrames()) {
                frames.add("[" + quote(frame.getMethod().getType().getName()) + ","
                        + quote(frame.getMethod().getName()) + "," + frame.getLineNumber() + "]");
            }
        }
        parts.add("\"frames\":[" + String.join(",", frames) + "]");
        return "{" + String.join(",", parts) + "}";
    }

    // The attributes are the fields behind the endpoint; their labels are the names.
    private static String describeContext(RecordedObject context) {
        List<String> parts = new ArrayList<>();
        List<String> tags = new ArrayList<>();
        boolean behindEndpoint = false;
        for (ValueDescriptor field : context.getFields()) {
            if (behindEndpoint) {
                tags.add(quote(field.getLabel()) + ":" + quote(context.getString(field.getName())));
            } else if (FIXED.contains(field.getName())) {
                Object value = context.getValue(field.getName());
                parts.add(quote(field.getName()) + ":"
                        + (value instanceof Long ? value.toString() : quote((String) value)));
            }
            behindEndpoint = behindEndpoint || field.getName().equals("endpoint");
        }
        parts.add("\"tags\":{" + String.join(",", tags) + "}");
        return "{" + String.join(",", parts) + "}";
    }

    private static String quote(String text) {
        if (text == null) {
            return "null";
        }
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            quoted.append(c == '"' || c == '\\' || c < ' ' || c > '~'
                    ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        }
        return quoted.append('"').toString();
    }
}
