package io.spanprof.opentelemetry;

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.trace.ReadWriteSpan;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SpanProcessor;
import io.spanprof.JavaProfiler;

/**
 * Finds the local root of each span as it starts, and when a local root ends tells the profiler
 * what it was about: its http.route, or its name. It changes no span and exports nothing.
 */
public final class LocalRootProcessor implements SpanProcessor {
  private static final AttributeKey<String> ROUTE = AttributeKey.stringKey("http.route");

  @Override
  public void onStart(Context parentContext, ReadWriteSpan span) {
    long spanId = HexIds.parse(span.getSpanContext().getSpanId(), 0);
    LocalRoots.remember(spanId, span.getParentSpanContext());
  }

  @Override
  public boolean isStartRequired() {
    return true;
  }

  @Override
  public void onEnd(ReadableSpan span) {
    long spanId = HexIds.parse(span.getSpanContext().getSpanId(), 0);
    boolean isLocalRoot =
        !span.getParentSpanContext().isValid() || span.getParentSpanContext().isRemote();
    if (!isLocalRoot) return;
    String route = span.getAttribute(ROUTE);
    JavaProfiler.getInstance().setEndpoint(spanId, route != null ? route : span.getName());
  }

  @Override
  public boolean isEndRequired() {
    return true;
  }
}
