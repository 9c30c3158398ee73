package io.spanprof.opentelemetry;

import io.opentelemetry.context.ContextStorage;
import io.opentelemetry.context.ContextStorageProvider;

/**
 * How the OpenTelemetry API finds us: it asks for providers of this kind when a context is first
 * used, so that this jar on the class path is enough. If the application has another provider as
 * well, OpenTelemetry takes neither and says so; then name one by
 * -Dio.opentelemetry.context.contextStorageProvider.
 */
public final class SpanprofContextStorageProvider implements ContextStorageProvider {
  private static final String JAVAAGENT = "io.opentelemetry.javaagent.OpenTelemetryAgent";

  @Override
  public ContextStorage get() {
    ContextStorage standard = ContextStorage.defaultStorage();
    if (javaagentIsThere()) {
      System.err.println(
          "spanprof: spans are not published: the OpenTelemetry javaagent keeps them in a copy of"
              + " the API that it hides from the application; use the OpenTelemetry SDK instead of"
              + " the javaagent, or set contexts by io.spanprof.ThreadContext");
      return standard;
    }
    return new PublishingContextStorage(standard);
  }

  private static boolean javaagentIsThere() {
    try {
      Class.forName(JAVAAGENT, false, ClassLoader.getSystemClassLoader());
      return true;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }
}
