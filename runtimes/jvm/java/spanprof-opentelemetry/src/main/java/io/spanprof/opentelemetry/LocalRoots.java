package io.spanprof.opentelemetry;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.sdk.trace.ReadableSpan;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * The first span of each trace in this process: the one without a parent, or whose parent is
 * elsewhere. Remembered by span in a table of fixed size, in which a newer span may take the place
 * of an older one: such an old span then counts as its own root.
 */
final class LocalRoots {
  private static final int SIZE = 1 << 16;

  private static final class Entry {
    final long spanId;
    final long rootSpanId;

    Entry(long spanId, long rootSpanId) {
      this.spanId = spanId;
      this.rootSpanId = rootSpanId;
    }
  }

  private static final AtomicReferenceArray<Entry> ENTRIES = new AtomicReferenceArray<>(SIZE);

  /** The local root of a span that becomes active, also where no processor told of its start. */
  static long of(Span span, long spanId) {
    Entry known = ENTRIES.get(index(spanId));
    if (known != null && known.spanId == spanId) return known.rootSpanId;
    if (span.getSpanContext().isRemote()) return 0; // not of this process
    return remember(
        spanId, span instanceof ReadableSpan ? ((ReadableSpan) span).getParentSpanContext() : null);
  }

  static long remember(long spanId, SpanContext parent) {
    long root = spanId;
    if (parent != null && parent.isValid() && !parent.isRemote()) {
      long parentId = HexIds.parse(parent.getSpanId(), 0);
      Entry entry = ENTRIES.get(index(parentId));
      root = entry != null && entry.spanId == parentId ? entry.rootSpanId : parentId;
    }
    ENTRIES.set(index(spanId), new Entry(spanId, root));
    return root;
  }

  private static int index(long spanId) {
    return (int) (spanId * 0x9E3779B97F4A7C15L >>> 48);
  }

  private LocalRoots() {}
}
