package io.spanprof.opentelemetry;

import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.SpanProcessor;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import io.spanprof.JavaProfiler;
import java.util.Collection;
import org.junit.jupiter.api.Test;

class HandBuiltSdkTest {
  @Test
  void theActiveSpanIsPublishedWithoutAChangeOfTheApplication() throws Exception {
    JavaProfiler.getInstance().execute("ctxstorage=otel,log=none");
    // Without any processor the SDK makes no spans; this one stands for the application's exporter.
    SpanProcessor exporter = SimpleSpanProcessor.create(new DiscardingExporter());
    try (SdkTracerProvider provider =
        SdkTracerProvider.builder().addSpanProcessor(exporter).build()) {
      new PublishedSpans(provider.get("test")).run();
    }
  }

  private static final class DiscardingExporter implements SpanExporter {
    @Override
    public CompletableResultCode export(Collection<SpanData> spans) {
      return CompletableResultCode.ofSuccess();
    }

    @Override
    public CompletableResultCode flush() {
      return CompletableResultCode.ofSuccess();
    }

    @Override
    public CompletableResultCode shutdown() {
      return CompletableResultCode.ofSuccess();
    }
  }
}
