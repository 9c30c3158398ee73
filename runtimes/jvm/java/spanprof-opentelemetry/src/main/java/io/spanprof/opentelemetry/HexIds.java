package io.spanprof.opentelemetry;

/** Ids as OpenTelemetry spells them: lower-case hexadecimal digits, sixteen for 64 bits. */
final class HexIds {
  static long parse(String digits, int from) {
    long id = 0;
    for (int i = from; i < from + 16; i++) {
      int c = digits.charAt(i);
      id = id << 4 | (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return id;
  }

  private HexIds() {}
}
