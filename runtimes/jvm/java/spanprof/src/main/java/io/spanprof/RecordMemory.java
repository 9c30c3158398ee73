package io.spanprof;

import java.nio.ByteBuffer;

/**
 * A piece of native memory as both writers want it. The address comes from native code: a direct
 * buffer does not tell its own to code outside the JDK.
 */
final class RecordMemory {
  final ByteBuffer buffer;
  final long address;

  RecordMemory(ByteBuffer buffer, long address) {
    this.buffer = buffer;
    this.address = address;
  }
}
