package io.spanprof;

import static io.spanprof.RecordLayout.*;

import java.nio.ByteBuffer;

/**
 * The Java implementation of the record's write protocol, for one platform thread and its object.
 * The other implementation, and the reasons for every step, are in
 * include/spanprof/internal/thread_context.hpp; docs/protocols.md is the specification.
 *
 * <p>Each try method does the plain case. Where anything is special it leaves the record as it was
 * and returns 0 or false, and the caller asks the library: the thread is not attached, latencies
 * are measured, the process was shut down, the slot has moved, tags have to be spelt out for other
 * processes, or a write was left half done.
 *
 * <p>The reader of the object is a signal handler on the same thread, so it is enough that the
 * compiler keeps the order. Readers of the slot are elsewhere: for them the fences are real.
 */
final class RecordWriter {
  private static final BufferWriter WRITER = BufferWriterFactory.create();

  /** Stands in for a thread's own before it is attached: its checksum is 0, so nothing is tried. */
  static final RecordWriter UNATTACHED = new RecordWriter(unattachedMemory(), null);

  /** Nobody else who reads on this thread has it: theirs are odd addresses. */
  private static final long READER_MARK = 1;

  private static final int READ_TRIES = 16;

  private final RecordMemory object;
  private final RecordMemory slot;
  private long mark = FIRST_MARK;

  RecordWriter(RecordMemory object, RecordMemory slot) {
    this.object = object;
    this.slot = slot;
  }

  private static RecordMemory unattachedMemory() {
    long[] address = new long[1];
    ByteBuffer buffer = Native.unattachedMemory(address);
    return new RecordMemory(buffer, address[0]);
  }

  static long checksum(long spanId, long rootSpanId) {
    long hash = (spanId * CHECKSUM_FACTOR) ^ (Long.rotateLeft(rootSpanId, 32) * CHECKSUM_FACTOR);
    return hash == 0 ? -1 : hash;
  }

  /** Has the JVM initialise what the methods below use. */
  void useOnce() {
    HexDigits.ofLowerHalf(checksum(0, 0));
    tryReplace(ContextSnapshot.EMPTY);
  }

  /** The checksum, or 0. */
  long trySet(long spanId, long rootSpanId) {
    if (!isWritable()) return 0;
    markBusy();
    // Read behind the mark: until then a signal handler might have changed it.
    int attention = WRITER.readInt(object, ATTENTION);
    if (attention != 0) return finishSet(attention, 0, 0, spanId, rootSpanId);
    storeIds(spanId, rootSpanId);
    return markReady(spanId, rootSpanId);
  }

  /** The checksum, or 0. The trace id must not be 0. */
  long trySetTrace(long traceHigh, long traceLow, long spanId, long rootSpanId) {
    if (!isWritable()) return 0;
    markBusy();
    int attention = WRITER.readInt(object, ATTENTION);
    if ((attention & ~ATTENTION_TRACE) != 0) {
      return finishSet(attention, traceHigh, traceLow, spanId, rootSpanId);
    }
    if (attention == 0) WRITER.writeInt(object, ATTENTION, ATTENTION_TRACE);
    storeIds(spanId, rootSpanId);
    storeTrace(traceHigh, traceLow, 0);
    return markReady(spanId, rootSpanId);
  }

  /** Only where nothing is published outside. The position and the id must exist. */
  boolean trySetTag(int position, int id) {
    if (!isWritable()) return false;
    markBusy();
    boolean plain = (WRITER.readInt(object, ATTENTION) & ~ATTENTION_TRACE) == 0;
    if (plain) WRITER.writeInt(object, TAG_PAIRS + 4 * position, id);
    markReadyAsItIs();
    return plain;
  }

  /** Replaces ids, trace and tags. */
  boolean tryReplace(ContextSnapshot next) {
    if (!isWritable()) return false;
    markBusy();
    int attention = WRITER.readInt(object, ATTENTION);
    // What tags say is spelt out for readers outside, which only the library can.
    if (isSpecial(attention) || ((attention & ATTENTION_OUTSIDE) != 0 && !hasTags(next))) {
      markReadyAsItIs();
      return false;
    }
    boolean outside = (attention & ATTENTION_OUTSIDE) != 0;
    long idleWord = outside ? openSlot() : 0;
    if (outside) storeIdsOutside(next.spanId, next.rootSpanId);
    storeIds(next.spanId, next.rootSpanId);
    if (next.hasTrace() || (attention & ATTENTION_TRACE) != 0) {
      setHasTrace(attention, next.hasTrace());
      storeTrace(next.traceHigh, next.traceLow, next.traceFlags);
    }
    if (outside) {
      storeTraceOutside(next.traceHigh, next.traceLow, next.rootSpanId);
      makeOtelRecordValid(next.traceFlags, next.spanId, next.rootSpanId);
    } else {
      storeTags(next);
    }
    markReady(next.spanId, next.rootSpanId);
    if (outside) closeSlot(idleWord);
    return true;
  }

  /** What the thread has now, or null where the library has to be asked. */
  ContextSnapshot tryRead() {
    for (int i = 0; i < READ_TRIES; i++) {
      if (!isWritable()) return null;
      // A handler that writes while we copy replaces this.
      WRITER.writeLong(object, MARK, READER_MARK);
      WRITER.releaseFence();
      ContextSnapshot copy =
          new ContextSnapshot(
              WRITER.readLong(object, TRACE_ID_HIGH),
              WRITER.readLong(object, TRACE_ID_LOW),
              WRITER.readLong(object, SPAN_ID),
              WRITER.readLong(object, ROOT_SPAN_ID),
              WRITER.readInt(object, TRACE_FLAGS),
              WRITER.readLong(object, TAG_PAIRS),
              WRITER.readLong(object, TAG_PAIRS + 8),
              WRITER.readLong(object, TAG_PAIRS + 16),
              WRITER.readLong(object, TAG_PAIRS + 24),
              WRITER.readLong(object, TAG_PAIRS + 32));
      WRITER.releaseFence();
      if (WRITER.readLong(object, MARK) == READER_MARK) return copy;
    }
    return null;
  }

  boolean canRead() {
    return isWritable();
  }

  long spanId() {
    return WRITER.readLong(object, SPAN_ID);
  }

  long rootSpanId() {
    return WRITER.readLong(object, ROOT_SPAN_ID);
  }

  /** Whether the thread's slot is another one than when this was made. */
  boolean slotHasMoved() {
    return WRITER.readLong(object, SLOT_ADDRESS) != slotAddress();
  }

  // ---- The steps of a write, in their order ----

  private boolean isWritable() {
    return WRITER.readLong(object, CHECKSUM) != 0;
  }

  private void markBusy() {
    long next = mark + MARK_STEP;
    mark = next;
    WRITER.writeLong(object, MARK, next);
    WRITER.releaseFence();
    WRITER.writeLong(object, CHECKSUM, 0);
    WRITER.releaseFence();
  }

  private boolean isSpecial(int attention) {
    return (attention & ~(ATTENTION_OUTSIDE | ATTENTION_TRACE)) != 0
        || ((attention & ATTENTION_OUTSIDE) != 0 && slotHasMoved());
  }

  private long slotAddress() {
    return slot == null ? 0 : slot.address;
  }

  /** The rest of a set, behind markBusy, that is published outside or has a trace to take away. */
  private long finishSet(
      int attention, long traceHigh, long traceLow, long spanId, long rootSpanId) {
    if (isSpecial(attention)) {
      markReadyAsItIs();
      return 0;
    }
    boolean outside = (attention & ATTENTION_OUTSIDE) != 0;
    boolean hasTrace = (traceHigh | traceLow) != 0;
    long idleWord = outside ? openSlot() : 0;
    if (outside) storeIdsOutside(spanId, rootSpanId);
    storeIds(spanId, rootSpanId);
    if (hasTrace || (attention & ATTENTION_TRACE) != 0) {
      setHasTrace(attention, hasTrace);
      storeTrace(traceHigh, traceLow, 0);
      if (outside) storeTraceOutside(traceHigh, traceLow, rootSpanId);
    } else {
      WRITER.writeLong(slot, SLOT_TRACE_ID_LOW, rootSpanId);
    }
    if (outside) makeOtelRecordValid(0, spanId, rootSpanId);
    long checksum = markReady(spanId, rootSpanId);
    if (outside) closeSlot(idleWord);
    return checksum;
  }

  private void setHasTrace(int attention, boolean hasTrace) {
    int next = hasTrace ? attention | ATTENTION_TRACE : attention & ~ATTENTION_TRACE;
    if (next != attention) WRITER.writeInt(object, ATTENTION, next);
  }

  /** Returns the word that will close the slot. */
  private long openSlot() {
    long word = WRITER.readLong(object, SLOT_WORD);
    long idleWord = word + SLOT_FINISH_WRITE;
    WRITER.writeLong(object, SLOT_WORD, idleWord);
    WRITER.writeOrderedLong(slot, SLOT_OWN_WORD, word + SLOT_BEGIN_WRITE);
    // The busy word before every field below, for the acquire fence of a reader elsewhere.
    WRITER.releaseFence();
    WRITER.writeInt(object, OTEL_STATE, 0);
    WRITER.releaseFence();
    return idleWord;
  }

  private void storeIds(long spanId, long rootSpanId) {
    WRITER.writeLong(object, SPAN_ID, spanId);
    WRITER.writeLong(object, ROOT_SPAN_ID, rootSpanId);
  }

  /** Before storeIds: the root that the object still has is the one that is spelt out. */
  private void storeIdsOutside(long spanId, long rootSpanId) {
    WRITER.writeLong(slot, SLOT_SPAN_ID, spanId);
    WRITER.writeLong(object, OTEL_SPAN_ID, Long.reverseBytes(spanId));
    if (rootSpanId != WRITER.readLong(object, ROOT_SPAN_ID)) {
      WRITER.writeLong(object, OTEL_LOCAL_ROOT, HexDigits.ofUpperHalf(rootSpanId));
      WRITER.writeLong(object, OTEL_LOCAL_ROOT + 8, HexDigits.ofLowerHalf(rootSpanId));
    }
  }

  private void storeTrace(long traceHigh, long traceLow, int traceFlags) {
    WRITER.writeLong(object, TRACE_ID_HIGH, traceHigh);
    WRITER.writeLong(object, TRACE_ID_LOW, traceLow);
    WRITER.writeInt(object, TRACE_FLAGS, traceFlags);
  }

  /** The slot carries the trace id, or the local root where there is none. */
  private void storeTraceOutside(long traceHigh, long traceLow, long rootSpanId) {
    WRITER.writeLong(object, OTEL_TRACE_ID, Long.reverseBytes(traceHigh));
    WRITER.writeLong(object, OTEL_TRACE_ID + 8, Long.reverseBytes(traceLow));
    WRITER.writeLong(slot, SLOT_TRACE_ID_HIGH, traceHigh);
    WRITER.writeLong(
        slot, SLOT_TRACE_ID_LOW, (traceHigh | traceLow) != 0 ? traceLow : rootSpanId);
  }

  private boolean hasTags(ContextSnapshot other) {
    return WRITER.readLong(object, TAG_PAIRS) == other.tags01
        && WRITER.readLong(object, TAG_PAIRS + 8) == other.tags23
        && WRITER.readLong(object, TAG_PAIRS + 16) == other.tags45
        && WRITER.readLong(object, TAG_PAIRS + 24) == other.tags67
        && WRITER.readLong(object, TAG_PAIRS + 32) == other.tags89;
  }

  private void storeTags(ContextSnapshot next) {
    WRITER.writeLong(object, TAG_PAIRS, next.tags01);
    WRITER.writeLong(object, TAG_PAIRS + 8, next.tags23);
    WRITER.writeLong(object, TAG_PAIRS + 16, next.tags45);
    WRITER.writeLong(object, TAG_PAIRS + 24, next.tags67);
    WRITER.writeLong(object, TAG_PAIRS + 32, next.tags89);
  }

  private void makeOtelRecordValid(int traceFlags, long spanId, long rootSpanId) {
    WRITER.releaseFence();
    int size = WRITER.readInt(object, OTEL_ATTRIBUTES_SIZE);
    boolean hasTags = size > OTEL_LOCAL_ROOT_ENTRY_BYTES;
    int valid = hasTags || spanId != 0 ? 1 : 0;
    int shownSize = hasTags || rootSpanId != 0 ? size : 0;
    WRITER.writeInt(
        object,
        OTEL_STATE,
        valid
            | (traceFlags & 0xFF) << OTEL_STATE_FLAGS_SHIFT
            | shownSize << OTEL_STATE_SIZE_SHIFT);
  }

  /** The ids must be those that the record holds. */
  private long markReady(long spanId, long rootSpanId) {
    long checksum = checksum(spanId, rootSpanId);
    WRITER.releaseFence();
    WRITER.writeLong(object, CHECKSUM, checksum);
    return checksum;
  }

  private void markReadyAsItIs() {
    markReady(WRITER.readLong(object, SPAN_ID), WRITER.readLong(object, ROOT_SPAN_ID));
  }

  private void closeSlot(long idleWord) {
    // Pairs with the acquire load of a reader elsewhere.
    WRITER.writeOrderedLong(slot, SLOT_OWN_WORD, idleWord);
  }
}
