package io.spanprof;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * Finds the native library, once: it is there already (-agentpath, an attach), or a property or a
 * variable names it, or it is in this jar. Where none works the Java half does nothing, and says
 * why in one line.
 */
final class NativeLibrary {
  private static final String PROPERTY = "spanprof.library";
  private static final String VARIABLE = "SPANPROF_LIBRARY";
  private static final String FILE_NAME = "libspanprof-jvm.so";

  /** Null where the library works. */
  static final String WHY_UNAVAILABLE = load();

  static final boolean AVAILABLE = WHY_UNAVAILABLE == null;

  private static String load() {
    String reason;
    try {
      reason = isBound() ? null : loadNamedOrCarried();
      if (reason == null) reason = layoutMismatch();
    } catch (RuntimeException | LinkageError | IOException e) {
      reason = "its native library cannot be loaded: " + e;
    }
    if (reason != null) System.err.println("spanprof: contexts are not published: " + reason);
    return reason;
  }

  /** The JVM binds native methods to agents that it has loaded. */
  private static boolean isBound() {
    try {
      Native.layoutVersion();
      return true;
    } catch (UnsatisfiedLinkError e) {
      return false;
    }
  }

  private static String layoutMismatch() {
    int version = Native.layoutVersion();
    if (version == RecordLayout.VERSION) return null;
    return "the native library has record layout "
        + version
        + " and this jar "
        + RecordLayout.VERSION
        + "; use a jar and an agent of the same build";
  }

  private static String loadNamedOrCarried() throws IOException {
    String named = System.getProperty(PROPERTY);
    String namedBy = "-D" + PROPERTY;
    if (named == null) {
      named = System.getenv(VARIABLE);
      namedBy = VARIABLE;
    }
    if (named != null && !named.isEmpty()) return loadNamed(named, namedBy);
    String platform = platform();
    if (platform == null) {
      return "there is no native library for "
          + System.getProperty("os.name")
          + " on "
          + System.getProperty("os.arch")
          + "; profiling works on Linux, x86-64 and arm64";
    }
    String resource = "/META-INF/native/" + platform + "/" + FILE_NAME;
    try (InputStream library = NativeLibrary.class.getResourceAsStream(resource)) {
      if (library == null) {
        return "this jar carries no library for "
            + platform
            + "; name one by -D"
            + PROPERTY
            + "=/path/to/"
            + FILE_NAME
            + " or start the JVM with -agentpath";
      }
      return loadCarried(readAll(library));
    }
  }

  private static String loadNamed(String path, String namedBy) {
    try {
      System.load(Paths.get(path).toAbsolutePath().toString());
      return null;
    } catch (RuntimeException | UnsatisfiedLinkError e) {
      return "the library that " + namedBy + " names cannot be loaded: " + e.getMessage();
    }
  }

  /** The folder of this platform's library in the jar, or null. */
  static String platform() {
    String system = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
    if (!system.startsWith("linux")) return null;
    switch (System.getProperty("os.arch", "").toLowerCase(Locale.ROOT)) {
      case "amd64":
      case "x86_64":
        return "linux-x86_64";
      case "aarch64":
      case "arm64":
        return "linux-aarch64";
      default:
        return null;
    }
  }

  private static byte[] readAll(InputStream from) throws IOException {
    byte[] bytes = new byte[1 << 20];
    int length = 0;
    for (int read; (read = from.read(bytes, length, bytes.length - length)) >= 0; ) {
      length += read;
      if (length == bytes.length) bytes = java.util.Arrays.copyOf(bytes, 2 * length);
    }
    return java.util.Arrays.copyOf(bytes, length);
  }

  /** Many machines mount the first place so that nothing in it can be executed. */
  private static Set<Path> places() {
    Set<Path> places = new LinkedHashSet<>();
    add(places, System.getProperty("java.io.tmpdir"));
    add(places, System.getenv("XDG_RUNTIME_DIR"));
    add(places, System.getenv("XDG_CACHE_HOME"));
    String home = System.getProperty("user.home");
    if (home != null) add(places, home + "/.cache");
    add(places, "/dev/shm");
    add(places, "/var/tmp");
    return places;
  }

  private static void add(Set<Path> places, String directory) {
    if (directory != null && !directory.isEmpty()) places.add(Paths.get(directory));
  }

  private static String loadCarried(byte[] library) {
    List<String> failures = new ArrayList<>();
    for (Path place : places()) {
      String failure = loadFrom(place, library);
      if (failure == null) return null;
      failures.add(failure);
    }
    return "its native library could not be loaded from any of these places: "
        + String.join("; ", failures)
        + "; let -Djava.io.tmpdir name a directory that is not mounted noexec, or unpack the"
        + " library and name it by -D"
        + PROPERTY;
  }

  private static String loadFrom(Path place, byte[] library) {
    FileAttribute<Set<PosixFilePermission>> onlyForUs =
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
    Path directory = null;
    Path file = null;
    try {
      // A new directory that nobody else can write: the file in it is ours, and no link of others'.
      directory = Files.createTempDirectory(place, "spanprof-", onlyForUs);
      file = Files.createFile(directory.resolve(FILE_NAME), onlyForUs);
      Files.write(file, library);
      System.load(file.toAbsolutePath().toString());
      return null;
    } catch (IOException | RuntimeException | UnsatisfiedLinkError e) {
      return place + " (" + e + ")";
    } finally {
      // The JVM holds the library open; its name is not needed any more.
      delete(file);
      delete(directory);
    }
  }

  private static void delete(Path path) {
    if (path == null) return;
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      path.toFile().deleteOnExit();
    }
  }

  private NativeLibrary() {}
}
