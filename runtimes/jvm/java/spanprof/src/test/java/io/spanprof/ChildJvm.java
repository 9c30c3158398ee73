package io.spanprof;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A program of the tests in a JVM of its own, of the version that runs the tests. */
final class ChildJvm {
  final int exitCode;
  final String output; // both streams

  private ChildJvm(int exitCode, String output) {
    this.exitCode = exitCode;
    this.output = output;
  }

  static ChildJvm run(Class<?> program, String... options) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(System.getProperty("java.home") + "/bin/java");
    if (Boolean.FALSE.toString().equals(System.getProperty("jdk.util.jar.enableMultiRelease"))) {
      command.add("-Djdk.util.jar.enableMultiRelease=false");
    }
    if (WritePath.IS_JAVA) command.add("-Dspanprof.writer=java");
    command.addAll(Arrays.asList(options));
    command.add("-cp");
    command.add(System.getProperty("java.class.path"));
    command.add(program.getName());
    return run(command);
  }

  static ChildJvm run(List<String> command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    process.getOutputStream().close();
    ByteArrayOutputStream output = new ByteArrayOutputStream();
    try (InputStream from = process.getInputStream()) {
      byte[] bytes = new byte[8192];
      for (int read; (read = from.read(bytes)) >= 0; ) output.write(bytes, 0, read);
    }
    if (!process.waitFor(120, TimeUnit.SECONDS)) {
      process.destroyForcibly();
      throw new AssertionError("still running: " + command);
    }
    String text = new String(output.toByteArray(), StandardCharsets.UTF_8);
    return new ChildJvm(process.exitValue(), text);
  }
}
