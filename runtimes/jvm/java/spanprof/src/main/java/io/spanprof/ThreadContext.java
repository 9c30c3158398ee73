package io.spanprof;

import java.nio.ByteBuffer;

/**
 * Where a thread says which span it works for. {@link #current()} gives the calling thread's; a
 * caller that keeps it spares the look-up.
 *
 * <pre>{@code
 * ThreadContext context = ThreadContext.current();
 * try (ContextScope span = context.open(spanId, localRootSpanId)) {
 *   context.setTag("http.route", "/cart");
 *   ...
 * } // the span from before is active again, with its tags
 * }</pre>
 *
 * <p>Use it on its own thread. A call on another thread is harmless: it acts on that thread's own
 * context, through the library, which costs a native call.
 *
 * <p>A virtual thread never holds memory of the thread that carries it: each call is a native one.
 * A platform thread reads its own record, and also writes it where that is faster than a native
 * call; see {@link WritePath}.
 *
 * <p>Before the library is initialised (by {@link JavaProfiler#execute}, by the agent's options, or
 * from outside), and where it is not available, every call does nothing.
 */
public final class ThreadContext {
  private static final ThreadLocal<ThreadContext> CURRENT =
      new ThreadLocal<ThreadContext>() {
        @Override
        protected ThreadContext initialValue() {
          return new ThreadContext(Thread.currentThread(), RecordWriter.UNATTACHED);
        }
      };

  /** For whoever must not have memory of a thread: it belongs to none, so the library is called. */
  private static final ThreadContext OF_NO_THREAD = new ThreadContext(null, null);

  static {
    // Everything that a write uses is initialised before the first: it must not happen in the
    // middle of one, perhaps with little stack left.
    if (NativeLibrary.AVAILABLE) RecordWriter.UNATTACHED.useOnce();
  }

  private final Thread owner;
  private RecordWriter writer;

  private ThreadContext(Thread owner, RecordWriter writer) {
    this.owner = owner;
    this.writer = writer;
  }

  /** The calling thread's. */
  public static ThreadContext current() {
    if (!NativeLibrary.AVAILABLE || VirtualThreads.isVirtual(Thread.currentThread())) {
      return OF_NO_THREAD;
    }
    return CURRENT.get();
  }

  /** The calling thread's for one write: spares the look-up where it would not be used. */
  static ThreadContext forOneWrite() {
    return WritePath.IS_JAVA ? current() : OF_NO_THREAD;
  }

  /** Whether contexts are published for readers outside the process (ctxstorage=otel). */
  public static boolean isOtelMode() {
    return NativeLibrary.AVAILABLE && Native.isOtelMode();
  }

  /**
   * The active span and the local root of its trace in this process. Takes away a trace id that was
   * set before; tags stay.
   *
   * @return the record's checksum, or 0 if nothing was kept
   */
  public long put(long spanId, long rootSpanId) {
    if (WritePath.IS_JAVA && Thread.currentThread() == owner) {
      long checksum = writer.trySet(spanId, rootSpanId);
      if (checksum != 0) return checksum;
    }
    return putByLibrary(0, 0, spanId, rootSpanId);
  }

  /** The same with the 128-bit trace id. */
  public long putOtel(long traceHigh, long traceLow, long spanId, long rootSpanId) {
    if (WritePath.IS_JAVA && Thread.currentThread() == owner) {
      long checksum =
          (traceHigh | traceLow) != 0
              ? writer.trySetTrace(traceHigh, traceLow, spanId, rootSpanId)
              : writer.trySet(spanId, rootSpanId);
      if (checksum != 0) return checksum;
    }
    return putByLibrary(traceHigh, traceLow, spanId, rootSpanId);
  }

  /**
   * Sets the tag at a position of attributes=; null or "" takes it away.
   *
   * @return false if there is no such position, no room for another value, or no initialised
   * library
   */
  public boolean setTag(int slot, String value) {
    if (!NativeLibrary.AVAILABLE) return false;
    if (value == null || value.isEmpty()) return putCustom(slot, 0);
    int id = TagIds.of(value);
    return id != 0 && putCustom(slot, id);
  }

  /** Sets a tag by its name, which is added to attributes= if it is new and there are not ten. */
  public boolean setTag(String name, String value) {
    if (!NativeLibrary.AVAILABLE) return false;
    int slot = TagIds.positionOf(name);
    return slot >= 0 && setTag(slot, value);
  }

  /**
   * Sets the tag at a position by the number of its value, see {@link JavaProfiler#internTag}; 0
   * takes it away.
   *
   * @return as {@link #setTag(int, String)}
   */
  public boolean putCustom(int offset, int value) {
    if (TagIds.areKnown(offset, value)) {
      if (!WritePath.IS_JAVA) return Native.setKnownTagId(offset, value) >= 0;
      if (Thread.currentThread() == owner && writer.trySetTag(offset, value)) return true;
    }
    return putCustomByLibrary(offset, value);
  }

  /** No ids, no tags. */
  public void clear() {
    replace(ContextSnapshot.EMPTY);
  }

  public long getSpanId() {
    if (Thread.currentThread() == owner && writer.canRead()) return writer.spanId();
    return NativeLibrary.AVAILABLE ? Native.spanId() : 0;
  }

  public long getRootSpanId() {
    if (Thread.currentThread() == owner && writer.canRead()) return writer.rootSpanId();
    return NativeLibrary.AVAILABLE ? Native.rootSpanId() : 0;
  }

  /** Makes a span the active one until the scope is closed. */
  public ContextScope open(long spanId, long rootSpanId) {
    ContextScope scope = scopeOver(capture());
    put(spanId, rootSpanId);
    return scope;
  }

  /** The same with the 128-bit trace id. */
  public ContextScope open(long traceHigh, long traceLow, long spanId, long rootSpanId) {
    ContextScope scope = scopeOver(capture());
    putOtel(traceHigh, traceLow, spanId, rootSpanId);
    return scope;
  }

  /** Makes the whole of a captured context the active one until the scope is closed. */
  public ContextScope open(ContextSnapshot context) {
    ContextScope scope = scopeOver(capture());
    replace(context);
    return scope;
  }

  /** The context as it is now. */
  public ContextSnapshot capture() {
    if (Thread.currentThread() == owner) {
      ContextSnapshot copy = writer.tryRead();
      if (copy != null) return copy;
    }
    return captureByLibrary();
  }

  void replace(ContextSnapshot next) {
    if (WritePath.IS_JAVA && Thread.currentThread() == owner && writer.tryReplace(next)) return;
    replaceByLibrary(next);
  }

  private ContextScope scopeOver(ContextSnapshot parent) {
    return new ContextScope(Thread.currentThread(), this, parent);
  }

  // ---- What the writer leaves to the library ----

  private long putByLibrary(long traceHigh, long traceLow, long spanId, long rootSpanId) {
    if (!NativeLibrary.AVAILABLE) return 0;
    boolean isKept =
        (traceHigh | traceLow) != 0
            ? Native.setTrace(traceHigh, traceLow, spanId, rootSpanId)
            : Native.set(spanId, rootSpanId);
    if (!isKept) return 0;
    if (WritePath.IS_JAVA) followObject();
    return RecordWriter.checksum(spanId, rootSpanId);
  }

  private boolean putCustomByLibrary(int position, int id) {
    if (!NativeLibrary.AVAILABLE || Native.setTagId(position, id) < 0) return false;
    TagIds.remember(position, id);
    if (WritePath.IS_JAVA) followObject();
    return true;
  }

  private ContextSnapshot captureByLibrary() {
    if (!NativeLibrary.AVAILABLE) return ContextSnapshot.EMPTY;
    long[] words = new long[Native.CONTEXT_WORDS];
    if (Native.get(words) < 0) return ContextSnapshot.EMPTY;
    followObject();
    return ContextSnapshot.of(words);
  }

  private void replaceByLibrary(ContextSnapshot next) {
    if (!NativeLibrary.AVAILABLE) return;
    if (next == ContextSnapshot.EMPTY) {
      Native.clear(); // does not attach a thread that has nothing
      return;
    }
    int result =
        Native.replace(
            next.traceHigh,
            next.traceLow,
            next.spanId,
            next.rootSpanId,
            next.traceFlags,
            next.tags01,
            next.tags23,
            next.tags45,
            next.tags67,
            next.tags89);
    if (WritePath.IS_JAVA && result >= 0) followObject();
  }

  /** Behind a call of the library: the thread has an object, or publishes in another slot now. */
  private void followObject() {
    if (Thread.currentThread() != owner) return;
    if (writer != RecordWriter.UNATTACHED && !writer.slotHasMoved()) return;
    long[] address = new long[1];
    ByteBuffer object = Native.objectMemory(address);
    if (object == null) return;
    RecordMemory objectMemory = new RecordMemory(object, address[0]);
    ByteBuffer slot = Native.slotMemory(address);
    writer =
        new RecordWriter(objectMemory, slot == null ? null : new RecordMemory(slot, address[0]));
  }
}
