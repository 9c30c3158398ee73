package io.spanprof.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.spanprof.ContextSnapshot;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** An application that knows nothing of spanprof, and what must be published while it runs. */
final class PublishedSpans {
  private final Tracer tracer;

  PublishedSpans(Tracer tracer) {
    this.tracer = tracer;
  }

  private static void assertPublished(Span span, Span localRoot) {
    ContextSnapshot seen = ContextSnapshot.capture();
    SpanContext ids = span.getSpanContext();
    assertTrue(ids.isValid() && !ids.isRemote(), "the SDK made no span of its own");
    assertEquals(
        ids.getTraceId(), String.format("%016x%016x", seen.getTraceIdHigh(), seen.getTraceIdLow()));
    assertEquals(ids.getSpanId(), String.format("%016x", seen.getSpanId()));
    assertEquals(
        localRoot.getSpanContext().getSpanId(), String.format("%016x", seen.getRootSpanId()));
  }

  private static void assertNothingPublished() {
    ContextSnapshot seen = ContextSnapshot.capture();
    assertEquals(0, seen.getSpanId());
    assertEquals(0, seen.getRootSpanId());
    assertEquals(0, seen.getTraceIdLow());
  }

  void run() throws Exception {
    assertNothingPublished();
    for (int i = 0; i < 5_000; i++) nested();
    underARemoteParent();
    onAnotherThread();
    assertNothingPublished();
  }

  private void nested() {
    Span request = tracer.spanBuilder("request").startSpan();
    try (Scope outer = request.makeCurrent()) {
      assertPublished(request, request);
      Span query = tracer.spanBuilder("query").startSpan();
      try (Scope inner = query.makeCurrent()) {
        assertPublished(query, request);
        Span row = tracer.spanBuilder("row").startSpan();
        try (Scope innermost = row.makeCurrent()) {
          assertPublished(row, request);
        }
        row.end();
        assertPublished(query, request);
      }
      query.end();
      assertPublished(request, request);
    }
    request.end();
    assertNothingPublished();
  }

  private void underARemoteParent() {
    SpanContext caller =
        SpanContext.createFromRemoteParent(
            "0af7651916cd43dd8448eb211c80319c",
            "b7ad6b7169203331",
            TraceFlags.getSampled(),
            TraceState.getDefault());
    Span server =
        tracer
            .spanBuilder("server")
            .setParent(Context.root().with(Span.wrap(caller)))
            .startSpan();
    try (Scope scope = server.makeCurrent()) {
      assertPublished(server, server);
    }
    server.end();
  }

  private void onAnotherThread() throws Exception {
    ExecutorService pool = Executors.newSingleThreadExecutor();
    Span request = tracer.spanBuilder("request").startSpan();
    try (Scope scope = request.makeCurrent()) {
      Context.current().wrap(pool).submit(() -> assertPublished(request, request)).get();
      pool.submit(PublishedSpans::assertNothingPublished).get();
    }
    request.end();
    pool.shutdown();
  }
}
