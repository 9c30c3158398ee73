package io.spanprof.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;
import io.spanprof.JavaProfiler;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class AutoConfiguredSdkTest {
  @Test
  void theActiveSpanIsPublishedAndTheProcessorIsThere() throws Exception {
    JavaProfiler.getInstance().execute("log=none");
    Map<String, String> none = new HashMap<>();
    none.put("otel.traces.exporter", "none");
    none.put("otel.metrics.exporter", "none");
    none.put("otel.logs.exporter", "none");
    AutoConfiguredOpenTelemetrySdk sdk =
        AutoConfiguredOpenTelemetrySdk.builder().addPropertiesSupplier(() -> none).build();
    assertTrue(
        sdk.getOpenTelemetrySdk().getSdkTracerProvider().toString().contains("LocalRootProcessor"),
        () -> sdk.getOpenTelemetrySdk().getSdkTracerProvider().toString());
    new PublishedSpans(sdk.getOpenTelemetrySdk().getTracer("test")).run();
    sdk.getOpenTelemetrySdk().close();
  }
}
