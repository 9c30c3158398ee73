package io.spanprof.agent;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;

/** Gives a workload the right to redefine its own classes: {@code -javaagent:JAR}. */
public final class RedefinitionAgent {
  static volatile Instrumentation instrumentation;

  private RedefinitionAgent() {}

  public static void premain(String arguments, Instrumentation given) {
    instrumentation = given;
  }

  /** The class itself is on the class path: the jar only names it. */
  static File jar() throws IOException {
    Manifest manifest = new Manifest();
    Attributes attributes = manifest.getMainAttributes();
    attributes.put(Attributes.Name.MANIFEST_VERSION, "1.0");
    attributes.put(new Attributes.Name("Premain-Class"), RedefinitionAgent.class.getName());
    attributes.put(new Attributes.Name("Can-Redefine-Classes"), "true");
    File file = AgentProcess.temporaryFile(".jar");
    new JarOutputStream(new FileOutputStream(file), manifest).close();
    return file;
  }
}
