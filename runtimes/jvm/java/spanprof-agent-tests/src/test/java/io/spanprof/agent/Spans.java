package io.spanprof.agent;

/**
 * Methods whose names say under which span they run: {@code underN} runs under the span {@link #id}
 * of N. They are kept from being inlined, so that each is a frame of the stacks it is in.
 */
final class Spans {
  static final int COUNT = 16;
  private static final long SPAN_BASE = 0x5eed000000000000L;
  private static final long ROOT_BASE = 0x00f0000000000000L;
  static volatile long sink;

  /** What is done within a span: computes, and may wait. */
  interface Work {
    long run();
  }

  private Spans() {}

  static long id(int number) {
    return SPAN_BASE + number;
  }

  static long root(int number) {
    return ROOT_BASE + number;
  }

  static long burn(int rounds) {
    long value = sink + 1;
    for (int i = 0; i < rounds; i++) {
      value = value * 6364136223846793005L + 1442695040888963407L;
    }
    return value;
  }

  /** Runs without any span. */
  static void bare(Work work) {
    sink += work.run();
  }

  static void under(int number, Work work) {
    switch (number) {
      case 0: under0(work); break;
      case 1: under1(work); break;
      case 2: under2(work); break;
      case 3: under3(work); break;
      case 4: under4(work); break;
      case 5: under5(work); break;
      case 6: under6(work); break;
      case 7: under7(work); break;
      case 8: under8(work); break;
      case 9: under9(work); break;
      case 10: under10(work); break;
      case 11: under11(work); break;
      case 12: under12(work); break;
      case 13: under13(work); break;
      case 14: under14(work); break;
      default: under15(work); break;
    }
  }

  // What follows the call keeps it from becoming a jump.
  private static void under0(Work work) { sink += work.run(); }
  private static void under1(Work work) { sink += work.run(); }
  private static void under2(Work work) { sink += work.run(); }
  private static void under3(Work work) { sink += work.run(); }
  private static void under4(Work work) { sink += work.run(); }
  private static void under5(Work work) { sink += work.run(); }
  private static void under6(Work work) { sink += work.run(); }
  private static void under7(Work work) { sink += work.run(); }
  private static void under8(Work work) { sink += work.run(); }
  private static void under9(Work work) { sink += work.run(); }
  private static void under10(Work work) { sink += work.run(); }
  private static void under11(Work work) { sink += work.run(); }
  private static void under12(Work work) { sink += work.run(); }
  private static void under13(Work work) { sink += work.run(); }
  private static void under14(Work work) { sink += work.run(); }
  private static void under15(Work work) { sink += work.run(); }
}
