package io.spanprof;

/**
 * Who writes a platform thread's record: the Java writer through the thread's own buffer, or a
 * native call. Both write the same bytes by the same protocol, so it is only a question of time.
 * Measured on 17 and 25, a native call costs less than the bounds checks of the stores that it
 * replaces; older versions are said to be the other way round, and were not measured.
 * -Dspanprof.writer=java or =native decides otherwise.
 */
final class WritePath {
  static final boolean IS_JAVA = isJava();

  private static boolean isJava() {
    String named = System.getProperty("spanprof.writer", "");
    if (named.equals("java")) return true;
    if (named.equals("native")) return false;
    String version = System.getProperty("java.specification.version", "");
    if (version.startsWith("1.")) return true;
    try {
      return Integer.parseInt(version) < 17;
    } catch (NumberFormatException e) {
      return false;
    }
  }

  private WritePath() {}
}
