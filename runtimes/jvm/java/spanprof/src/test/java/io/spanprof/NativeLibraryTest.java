package io.spanprof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeLibraryTest {
  private static final boolean IS_JAVA_8 =
      "1.8".equals(System.getProperty("java.specification.version"));

  @TempDir Path directory;

  private static void assertWorks(ChildJvm child) {
    assertEquals(0, child.exitCode, child.output);
    assertTrue(child.output.contains("available: true"), child.output);
    assertTrue(child.output.contains("put: true"), child.output);
    assertFalse(child.output.contains("spanprof: "), child.output);
  }

  private static void assertDoesNothing(ChildJvm child, String reason) {
    assertEquals(0, child.exitCode, child.output);
    assertTrue(child.output.contains("available: false"), child.output);
    assertTrue(child.output.contains("refused: "), child.output);
    assertTrue(child.output.contains(reason), child.output);
    int first = child.output.indexOf("spanprof: contexts are not published");
    assertTrue(first >= 0, child.output);
    assertEquals(first, child.output.lastIndexOf("spanprof: contexts are not published"));
  }

  private Path unpack() throws Exception {
    Path library = directory.resolve("libspanprof-jvm.so");
    try (InputStream from =
        NativeLibrary.class.getResourceAsStream(
            "/META-INF/native/" + NativeLibrary.platform() + "/libspanprof-jvm.so")) {
      Files.copy(from, library);
    }
    return library;
  }

  @Test
  void theLibraryOfTheJarIsUnpackedAndLeavesNothingBehind() throws Exception {
    assertWorks(ChildJvm.run(LoadingProgram.class, "-Djava.io.tmpdir=" + directory));
    try (Stream<Path> left = Files.list(directory)) {
      assertEquals(
          0, left.filter(file -> file.getFileName().toString().startsWith("spanprof")).count());
    }
  }

  @Test
  void whereTheFirstPlaceCannotBeUsedAnotherIs() throws Exception {
    assertWorks(ChildJvm.run(LoadingProgram.class, "-Djava.io.tmpdir=" + directory + "/none"));
  }

  @Test
  void aPropertyNamesAnotherLibrary() throws Exception {
    Path library = unpack();
    assertWorks(ChildJvm.run(LoadingProgram.class, "-Dspanprof.library=" + library));
    Files.write(library, new byte[] {1, 2, 3});
    assertDoesNothing(
        ChildJvm.run(LoadingProgram.class, "-Dspanprof.library=" + library),
        "that -Dspanprof.library names");
  }

  @Test
  void anAgentThatIsLoadedAlreadyIsUsed() throws Exception {
    Path library = unpack();
    // Any attempt to load another would fail.
    assertWorks(
        ChildJvm.run(
            LoadingProgram.class, "-agentpath:" + library, "-Dspanprof.library=/nowhere.so"));
  }

  @Test
  void onAnotherPlatformItDoesNothingAndSaysSoOnce() throws Exception {
    // Java 8 itself does not start there.
    if (!IS_JAVA_8) {
      assertDoesNothing(
          ChildJvm.run(LoadingProgram.class, "-Dos.name=Plan 9"), "no native library for Plan 9");
    }
    assertDoesNothing(
        ChildJvm.run(LoadingProgram.class, "-Dos.arch=s390x"), "on s390x");
    assertDoesNothing(
        ChildJvm.run(LoadingProgram.class, "-Dos.arch=aarch64"), "no library for linux-aarch64");
  }

  @Test
  void theUnsafeWriterIsOnlyLoadedWhereJavaIs8() throws Exception {
    ChildJvm child = ChildJvm.run(LoadingProgram.class, "-verbose:class");
    boolean asOn8 =
        IS_JAVA_8
            || Boolean.FALSE.toString().equals(System.getProperty("jdk.util.jar.enableMultiRelease"));
    assertEquals(asOn8, child.output.contains("io.spanprof.BufferWriter8"));
    assertEquals(!asOn8, child.output.contains("io.spanprof.BufferWriter9"));
  }
}
