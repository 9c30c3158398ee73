package io.spanprof;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** For Java 9 and later: bounds-checked stores through a direct buffer. */
final class BufferWriter9 extends BufferWriter {
  private static final VarHandle LONG =
      MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
  private static final VarHandle INT =
      MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());

  /**
   * Uses each of the methods below once. The JVM links a handle's use when it first comes by, which
   * takes long and much stack, and must not happen in the middle of a write.
   */
  BufferWriter9() {
    RecordMemory scratch =
        new RecordMemory(ByteBuffer.allocateDirect(2 * Long.BYTES).alignedSlice(Long.BYTES), 0);
    writeLong(scratch, 0, readLong(scratch, 0));
    writeInt(scratch, 0, readInt(scratch, 0));
    writeOrderedLong(scratch, 0, 0);
    writeOrderedInt(scratch, 0, 0);
    writeAndReleaseLong(scratch, 0, 0);
    writeAndReleaseInt(scratch, 0, 0);
    releaseFence();
    fullFence();
  }

  @Override
  long readLong(RecordMemory memory, int offset) {
    return (long) LONG.get(memory.buffer, offset);
  }

  @Override
  int readInt(RecordMemory memory, int offset) {
    return (int) INT.get(memory.buffer, offset);
  }

  @Override
  void writeLong(RecordMemory memory, int offset, long value) {
    LONG.set(memory.buffer, offset, value);
  }

  @Override
  void writeInt(RecordMemory memory, int offset, int value) {
    INT.set(memory.buffer, offset, value);
  }

  @Override
  void writeOrderedLong(RecordMemory memory, int offset, long value) {
    LONG.setRelease(memory.buffer, offset, value);
  }

  @Override
  void writeOrderedInt(RecordMemory memory, int offset, int value) {
    INT.setRelease(memory.buffer, offset, value);
  }

  @Override
  void writeAndReleaseLong(RecordMemory memory, int offset, long value) {
    LONG.setVolatile(memory.buffer, offset, value);
  }

  @Override
  void writeAndReleaseInt(RecordMemory memory, int offset, int value) {
    INT.setVolatile(memory.buffer, offset, value);
  }

  @Override
  void releaseFence() {
    VarHandle.releaseFence();
  }

  @Override
  void fullFence() {
    VarHandle.fullFence();
  }
}
