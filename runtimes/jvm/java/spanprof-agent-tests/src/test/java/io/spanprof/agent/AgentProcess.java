package io.spanprof.agent;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A JVM of its own for a workload, with or without the agent. */
final class AgentProcess {
  static final String AGENT = System.getProperty("spanprof.agent");
  static final String COMMAND = System.getProperty("spanprof.command");

  final Process process;
  private final StringBuilder output = new StringBuilder();
  private final Thread reader;

  private AgentProcess(Process process) {
    this.process = process;
    this.reader = new Thread(this::read, "output");
    this.reader.start();
  }

  /** {@code agentOptions} null: without the agent. */
  static AgentProcess start(String agentOptions, List<String> jvmOptions, Class<?> main,
      String... arguments) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(System.getProperty("java.home") + "/bin/java");
    command.addAll(jvmOptions);
    // The first is for 22 and later, which warn of System.load.
    if (Runtime.version().feature() >= 22) {
      command.add("--enable-native-access=ALL-UNNAMED");
    }
    if (agentOptions != null) {
      command.add("-agentpath:" + AGENT + "=" + agentOptions);
    }
    command.addAll(Arrays.asList("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(Arrays.asList(arguments));
    return new AgentProcess(new ProcessBuilder(command).redirectErrorStream(true).start());
  }

  static String run(String... command) throws Exception {
    AgentProcess process =
        new AgentProcess(new ProcessBuilder(command).redirectErrorStream(true).start());
    process.awaitSuccess();
    return process.output();
  }

  private void read() {
    try (InputStream in = process.getInputStream()) {
      byte[] buffer = new byte[4096];
      for (int count; (count = in.read(buffer)) >= 0; ) {
        synchronized (output) {
          output.append(new String(buffer, 0, count, StandardCharsets.UTF_8));
        }
      }
    } catch (IOException closed) {
      // The process was killed.
    }
  }

  String output() {
    synchronized (output) {
      return output.toString();
    }
  }

  void awaitText(String text) throws InterruptedException {
    while (!output().contains(text)) {
      if (!process.isAlive()) {
        reader.join();
        if (output().contains(text)) {
          return;
        }
        throw new AssertionError("ended without \"" + text + "\":\n" + output());
      }
      Thread.sleep(10);
    }
  }

  void awaitSuccess() throws InterruptedException {
    if (!process.waitFor(900, TimeUnit.SECONDS)) {
      process.destroyForcibly();
      throw new AssertionError("still running after 900 s:\n" + output());
    }
    reader.join();
    if (process.exitValue() != 0) {
      throw new AssertionError("exit status " + process.exitValue() + ":\n" + output());
    }
  }

  void kill() throws InterruptedException {
    process.destroyForcibly().waitFor();
    reader.join();
  }

  static File temporaryFile(String suffix) throws IOException {
    File file = File.createTempFile("spanprof-test", suffix);
    file.delete();
    file.deleteOnExit();
    return file;
  }
}
