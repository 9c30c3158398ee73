package io.spanprof;

import java.lang.reflect.Field;
import sun.misc.Unsafe;

/** For Java 8, which has no other way to an ordered store outside the heap. */
final class BufferWriter8 extends BufferWriter {
  private static final Unsafe UNSAFE = findUnsafe();

  private static Unsafe findUnsafe() {
    try {
      Field field = Unsafe.class.getDeclaredField("theUnsafe");
      field.setAccessible(true);
      return (Unsafe) field.get(null);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this JVM gives no access to sun.misc.Unsafe", e);
    }
  }

  @Override
  long readLong(RecordMemory memory, int offset) {
    return UNSAFE.getLong(memory.address + offset);
  }

  @Override
  int readInt(RecordMemory memory, int offset) {
    return UNSAFE.getInt(memory.address + offset);
  }

  @Override
  void writeLong(RecordMemory memory, int offset, long value) {
    UNSAFE.putLong(memory.address + offset, value);
  }

  @Override
  void writeInt(RecordMemory memory, int offset, int value) {
    UNSAFE.putInt(memory.address + offset, value);
  }

  @Override
  void writeOrderedLong(RecordMemory memory, int offset, long value) {
    UNSAFE.putOrderedLong(null, memory.address + offset, value);
  }

  @Override
  void writeOrderedInt(RecordMemory memory, int offset, int value) {
    UNSAFE.putOrderedInt(null, memory.address + offset, value);
  }

  @Override
  void writeAndReleaseLong(RecordMemory memory, int offset, long value) {
    UNSAFE.putLongVolatile(null, memory.address + offset, value);
  }

  @Override
  void writeAndReleaseInt(RecordMemory memory, int offset, int value) {
    UNSAFE.putIntVolatile(null, memory.address + offset, value);
  }

  @Override
  void releaseFence() {
    UNSAFE.storeFence();
  }

  @Override
  void fullFence() {
    UNSAFE.fullFence();
  }
}
