package io.spanprof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Scanner;

/**
 * The vectors of record_vectors.txt through the Java writer, which has to do all of it but for what
 * tags say to readers outside.
 */
final class RecordVectors {
  private static final int OTEL_BYTES = 96;

  private final boolean isOtel;
  private final RecordMemory object;
  private final RecordMemory slot;
  private final RecordWriter writer;

  RecordVectors(boolean isOtel) {
    this.isOtel = isOtel;
    assertTrue(Native.set(0, 0)); // attaches
    long[] address = new long[1];
    ByteBuffer buffer = Native.objectMemory(address);
    object = new RecordMemory(buffer, address[0]);
    buffer = Native.slotMemory(address);
    assertEquals(isOtel, buffer != null);
    slot = buffer == null ? null : new RecordMemory(buffer, address[0]);
    writer = new RecordWriter(object, slot);
  }

  void run() throws Exception {
    int calls = 0;
    try (BufferedReader lines =
        new BufferedReader(
            new InputStreamReader(
                RecordVectors.class.getResourceAsStream("/record_vectors.txt"),
                StandardCharsets.UTF_8))) {
      for (String line; (line = lines.readLine()) != null; ) {
        if (line.isEmpty() || line.startsWith("#")) continue;
        String[] callAndBytes = line.split(" : ");
        carry(callAndBytes[0]);
        assertEquals(
            callAndBytes[1].split(" \\| ")[isOtel ? 1 : 0], bytes(), "after " + callAndBytes[0]);
        assertSequenceIsIdle();
        calls++;
      }
    }
    assertTrue(calls > 20);
  }

  private void carry(String call) {
    Scanner words = new Scanner(call);
    switch (words.next()) {
      case "put":
        assertTrue(writer.trySet(id(words), id(words)) != 0, call);
        break;
      case "putOtel":
        long high = id(words);
        long low = id(words);
        assertTrue(
            ((high | low) == 0
                    ? writer.trySet(id(words), id(words))
                    : writer.trySetTrace(high, low, id(words), id(words)))
                != 0,
            call);
        break;
      case "tag":
        int position = words.nextInt();
        int value = TagIds.of(words.next());
        assertEquals(!isOtel, writer.trySetTag(position, value), call);
        if (isOtel) assertEquals(0, Native.setTagId(position, value));
        break;
      case "replace":
        replace(
            new ContextSnapshot(
                id(words),
                id(words),
                id(words),
                id(words),
                (int) id(words),
                id(words) | id(words) << 32,
                0,
                0,
                0,
                0),
            call);
        break;
      case "clear":
        replace(ContextSnapshot.EMPTY, call);
        break;
      default:
        throw new AssertionError(call);
    }
  }

  private void replace(ContextSnapshot next, String call) {
    boolean hasSameTags = object.buffer.order(java.nio.ByteOrder.nativeOrder())
        .getLong(RecordLayout.TAG_PAIRS) == next.tags01;
    assertEquals(!isOtel || hasSameTags, writer.tryReplace(next), call);
    if (!isOtel || hasSameTags) return;
    int result =
        Native.replace(
            next.traceHigh, next.traceLow, next.spanId, next.rootSpanId, next.traceFlags,
            next.tags01, 0, 0, 0, 0);
    assertEquals(0, result);
  }

  private static long id(Scanner words) {
    return Long.parseUnsignedLong(words.next(), 16);
  }

  private String bytes() {
    String text = hex(object, 0, RecordLayout.TRACE_ID_HIGH)
        + ' '
        + hex(object, RecordLayout.TRACE_ID_HIGH, RecordLayout.SLOT_ADDRESS);
    if (!isOtel) return text;
    return text
        + ' '
        + hex(object, RecordLayout.OTEL_TRACE_ID, RecordLayout.OTEL_TRACE_ID + OTEL_BYTES)
        + ' '
        + hex(slot, 0, RecordLayout.SLOT_OWN_WORD);
  }

  private long lastWord;

  /** Idle, of the same owner, and two further than before for each call. */
  private void assertSequenceIsIdle() {
    if (!isOtel) return;
    long word = slot.buffer.order(java.nio.ByteOrder.nativeOrder())
        .getLong(RecordLayout.SLOT_OWN_WORD);
    assertEquals(0, word & 0xFF);
    assertEquals(Native.threadId(), (int) (word >> 8 & 0xFFFFFF));
    if (lastWord != 0) assertEquals(lastWord + RecordLayout.SLOT_FINISH_WRITE, word);
    lastWord = word;
  }

  private static String hex(RecordMemory memory, int from, int to) {
    StringBuilder text = new StringBuilder();
    for (int i = from; i < to; i++) text.append(String.format("%02x", memory.buffer.get(i)));
    return text.toString();
  }
}
