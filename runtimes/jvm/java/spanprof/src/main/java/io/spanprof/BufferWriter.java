package io.spanprof;

/**
 * Stores into native memory with the orderings that the record's protocol needs. There is one
 * implementation for Java 8 and one for later versions; {@link BufferWriterFactory} knows which.
 *
 * <p>Offsets are in bytes and not negative. Plain reads and writes may be unaligned; ordered ones
 * must be aligned.
 */
abstract class BufferWriter {
  abstract long readLong(RecordMemory memory, int offset);

  abstract int readInt(RecordMemory memory, int offset);

  abstract void writeLong(RecordMemory memory, int offset, long value);

  abstract void writeInt(RecordMemory memory, int offset, int value);

  /** A release store: everything before it is seen by whoever sees it. */
  abstract void writeOrderedLong(RecordMemory memory, int offset, long value);

  abstract void writeOrderedInt(RecordMemory memory, int offset, int value);

  /** A volatile store: a release store that no later access overtakes. */
  abstract void writeAndReleaseLong(RecordMemory memory, int offset, long value);

  abstract void writeAndReleaseInt(RecordMemory memory, int offset, int value);

  /**
   * No access before it is moved behind a store after it. On x86-64 it costs no instruction, but
   * keeps the compiler in order.
   */
  abstract void releaseFence();

  abstract void fullFence();
}
