package io.spanprof;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.junit.jupiter.api.Test;

class HexDigitsTest {
  private static String text(long id) {
    ByteBuffer digits = ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN);
    digits.putLong(HexDigits.ofUpperHalf(id)).putLong(HexDigits.ofLowerHalf(id));
    return new String(digits.array(), StandardCharsets.US_ASCII);
  }

  @Test
  void theyAreThoseOfFormat() {
    assertEquals("0123456789abcdef", text(0x0123456789ABCDEFL));
    Random random = new Random(1);
    for (int i = 0; i < 100_000; i++) {
      long id = random.nextLong() >>> random.nextInt(64);
      assertEquals(String.format("%016x", id), text(id));
    }
  }
}
