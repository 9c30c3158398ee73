package io.spanprof.opentelemetry;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextStorage;
import io.opentelemetry.context.Scope;
import io.spanprof.ThreadContext;

/**
 * Publishes the span of every context that becomes current on a thread, and on the close of its
 * scope the span of the context that is current again.
 */
final class PublishingContextStorage implements ContextStorage {
  private final ContextStorage delegate;

  PublishingContextStorage(ContextStorage delegate) {
    this.delegate = delegate;
  }

  @Override
  public Scope attach(Context toAttach) {
    Scope scope = delegate.attach(toAttach);
    if (scope == Scope.noop()) return scope; // it was the current one already
    publish(toAttach);
    return () -> {
      scope.close();
      publish(delegate.current());
    };
  }

  @Override
  public Context current() {
    return delegate.current();
  }

  @Override
  public Context root() {
    return delegate.root();
  }

  private static void publish(Context context) {
    Span span = context == null ? null : Span.fromContextOrNull(context);
    SpanContext ids = span == null ? SpanContext.getInvalid() : span.getSpanContext();
    ThreadContext thread = ThreadContext.current();
    if (!ids.isValid()) {
      thread.put(0, 0);
      return;
    }
    String traceId = ids.getTraceId();
    long spanId = HexIds.parse(ids.getSpanId(), 0);
    thread.putOtel(
        HexIds.parse(traceId, 0), HexIds.parse(traceId, 16), spanId, LocalRoots.of(span, spanId));
  }
}
