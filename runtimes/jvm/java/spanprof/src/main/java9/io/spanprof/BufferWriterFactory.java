package io.spanprof;

/** The writer for Java 9 and later. */
final class BufferWriterFactory {
  static BufferWriter create() {
    return new BufferWriter9();
  }

  private BufferWriterFactory() {}
}
