package io.spanprof;

import java.util.concurrent.Callable;

/**
 * The context of a thread at one instant: trace, span, local root, flags and tags. Immutable, so
 * any thread may make it its own.
 *
 * <pre>{@code
 * ContextSnapshot submitted = ContextSnapshot.capture();
 * queue.add(() -> {
 *   try (ContextScope scope = submitted.open()) {
 *     work();
 *   }
 * });
 * }</pre>
 */
public final class ContextSnapshot {
  static final ContextSnapshot EMPTY = new ContextSnapshot(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

  final long traceHigh;
  final long traceLow;
  final long spanId;
  final long rootSpanId;
  final int traceFlags;
  // Two tags each, the one with the even number in the lower half.
  final long tags01;
  final long tags23;
  final long tags45;
  final long tags67;
  final long tags89;

  ContextSnapshot(
      long traceHigh,
      long traceLow,
      long spanId,
      long rootSpanId,
      int traceFlags,
      long tags01,
      long tags23,
      long tags45,
      long tags67,
      long tags89) {
    this.traceHigh = traceHigh;
    this.traceLow = traceLow;
    this.spanId = spanId;
    this.rootSpanId = rootSpanId;
    this.traceFlags = traceFlags;
    this.tags01 = tags01;
    this.tags23 = tags23;
    this.tags45 = tags45;
    this.tags67 = tags67;
    this.tags89 = tags89;
  }

  static ContextSnapshot of(long[] words) {
    return new ContextSnapshot(
        words[0], words[1], words[2], words[3], (int) words[4], words[5], words[6], words[7],
        words[8], words[9]);
  }

  /** The calling thread's context. */
  public static ContextSnapshot capture() {
    return ThreadContext.current().capture();
  }

  /** Makes this the calling thread's context until the scope is closed. */
  public ContextScope open() {
    return ThreadContext.current().open(this);
  }

  /** The task, to be run with this context whatever thread runs it. */
  public Runnable wrap(Runnable task) {
    return new ContextTask<>(this, task, null);
  }

  /** The task, to be run with this context whatever thread runs it. */
  public <T> Callable<T> wrap(Callable<T> task) {
    return new ContextTask<>(this, null, task);
  }

  public long getTraceIdHigh() {
    return traceHigh;
  }

  public long getTraceIdLow() {
    return traceLow;
  }

  public long getSpanId() {
    return spanId;
  }

  public long getRootSpanId() {
    return rootSpanId;
  }

  /** The number that stands for the value of a tag, 0 for none. */
  public int getTagId(int slot) {
    long pair;
    switch (slot >> 1) {
      case 0:
        pair = tags01;
        break;
      case 1:
        pair = tags23;
        break;
      case 2:
        pair = tags45;
        break;
      case 3:
        pair = tags67;
        break;
      case 4:
        pair = tags89;
        break;
      default:
        return 0;
    }
    return (int) (pair >>> (slot & 1) * 32);
  }

  boolean hasTrace() {
    return (traceHigh | traceLow | traceFlags) != 0;
  }
}
