package io.spanprof;

/** Hexadecimal digits eight at a time, first digit in the lowest byte, without a table. */
final class HexDigits {
  static long ofUpperHalf(long value) {
    return digits(value >>> 32);
  }

  static long ofLowerHalf(long value) {
    return digits(value & 0xFFFFFFFFL);
  }

  private static long digits(long half) {
    // One nibble a byte, by halving the distance three times; then in the order of the digits.
    long nibbles = (half | half << 16) & 0x0000FFFF0000FFFFL;
    nibbles = (nibbles | nibbles << 8) & 0x00FF00FF00FF00FFL;
    nibbles = (nibbles | nibbles << 4) & 0x0F0F0F0F0F0F0F0FL;
    nibbles = Long.reverseBytes(nibbles);
    // Adding 6 carries into bit 4 for the nibbles that are letters.
    long letters = (nibbles + 0x0606060606060606L) >>> 4 & 0x0101010101010101L;
    return nibbles + 0x3030303030303030L + letters * ('a' - '0' - 10);
  }

  private HexDigits() {}
}
