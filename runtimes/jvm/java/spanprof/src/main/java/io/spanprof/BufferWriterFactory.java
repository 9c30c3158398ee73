package io.spanprof;

/** The writer for this version of Java. The jar has another class of this name for 9 and later. */
final class BufferWriterFactory {
  static BufferWriter create() {
    return new BufferWriter8();
  }

  private BufferWriterFactory() {}
}
