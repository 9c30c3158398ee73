package io.spanprof;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The profiler of this JVM.
 *
 * <pre>{@code
 * JavaProfiler profiler = JavaProfiler.getInstance();
 * profiler.execute("start,cpu=10ms,ctxstorage=otel,file=profile.jfr");
 * profiler.setContext(spanId, localRootSpanId);
 * ...
 * profiler.clearContext();
 * profiler.execute("stop");
 * }</pre>
 *
 * <p>Where the native library cannot work, everything but {@link #execute} does nothing, and {@link
 * #whyUnavailable()} says why. All methods may be called from any thread.
 */
public final class JavaProfiler {
  private static final JavaProfiler INSTANCE = new JavaProfiler();

  private JavaProfiler() {}

  public static JavaProfiler getInstance() {
    return INSTANCE;
  }

  public boolean isAvailable() {
    return NativeLibrary.AVAILABLE;
  }

  /** Why there is no native library, and what to do; null where there is one. */
  public String whyUnavailable() {
    return NativeLibrary.WHY_UNAVAILABLE;
  }

  /** Whether contexts are kept: after a start, or any options. */
  public boolean isInitialized() {
    return NativeLibrary.AVAILABLE && Native.isInitialized();
  }

  /**
   * Carries out a command with its options, as the agent does: {@code
   * start,cpu=10ms,wall=50ms,file=profile.jfr}, {@code stop}, {@code dump,file=now.jfr}, {@code
   * status}. Options without a command ({@code ctxstorage=otel,attributes=http.route}) only
   * initialise: contexts are published from then on.
   *
   * @return what there is to say, for people
   * @throws IllegalArgumentException if the command cannot be understood
   * @throws IllegalStateException if it is not possible now, or not on this platform
   * @throws IOException if a file or a connection failed
   */
  public String execute(String command) throws IOException {
    if (command == null) throw new IllegalArgumentException("the command is null; e.g. \"status\"");
    if (!NativeLibrary.AVAILABLE) {
      throw new IllegalStateException(
          "\"" + command + "\" cannot be carried out: " + NativeLibrary.WHY_UNAVAILABLE);
    }
    byte[] answer = Native.execute(command.getBytes(StandardCharsets.UTF_8));
    String text = new String(answer, 1, answer.length - 1, StandardCharsets.UTF_8);
    switch (answer[0]) {
      case 'A':
        throw new IllegalArgumentException("\"" + command + "\": " + text);
      case 'S':
        throw new IllegalStateException("\"" + command + "\": " + text);
      case 'I':
        throw new IOException("\"" + command + "\": " + text);
      default:
        return text;
    }
  }

  /** What the profiler is doing, for people. */
  public String getStatus() {
    if (!NativeLibrary.AVAILABLE) return "not available: " + NativeLibrary.WHY_UNAVAILABLE;
    try {
      return execute("status");
    } catch (IOException e) {
      return e.getMessage();
    }
  }

  /** {@link ThreadContext#put} on the calling thread's context. */
  public void setContext(long spanId, long rootSpanId) {
    if (WritePath.IS_JAVA) {
      ThreadContext.current().put(spanId, rootSpanId);
    } else if (NativeLibrary.AVAILABLE) {
      Native.set(spanId, rootSpanId);
    }
  }

  /** {@link ThreadContext#putOtel} on the calling thread's context. */
  public void setContext(long traceHigh, long traceLow, long spanId, long rootSpanId) {
    if (WritePath.IS_JAVA) {
      ThreadContext.current().putOtel(traceHigh, traceLow, spanId, rootSpanId);
    } else if (NativeLibrary.AVAILABLE) {
      Native.setTrace(traceHigh, traceLow, spanId, rootSpanId);
    }
  }

  /** No ids, no tags. */
  public void clearContext() {
    ThreadContext.forOneWrite().clear();
  }

  /** The number that stands for a tag's value, for {@link ThreadContext#putCustom}; 0: no room. */
  public int internTag(String value) {
    return NativeLibrary.AVAILABLE && value != null && !value.isEmpty() ? TagIds.of(value) : 0;
  }

  /**
   * Says what all spans under a local root are about: a route, a method. At any time before the
   * profile is written.
   *
   * @return false if there is no room for another name, or no initialised library
   */
  public boolean setEndpoint(long rootSpanId, String name) {
    return NativeLibrary.AVAILABLE
        && name != null
        && Native.setEndpoint(rootSpanId, name.getBytes(StandardCharsets.UTF_8)) >= 0;
  }

  /** How often something was refused, dropped or given up, by the reason. */
  public Map<String, Long> getCounters() {
    Map<String, Long> counters = new LinkedHashMap<>();
    if (!NativeLibrary.AVAILABLE) return counters;
    for (int i = 0; ; i++) {
      byte[] name = Native.counterName(i);
      if (name == null) return counters;
      counters.put(new String(name, StandardCharsets.UTF_8), Native.counterValue(i));
    }
  }
}
