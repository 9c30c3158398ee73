package io.spanprof.opentelemetry;

import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizer;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;

/**
 * Adds {@link LocalRootProcessor} where the SDK is configured by its autoconfigure module. An
 * application that builds its SDK by hand adds the processor itself, if it wants endpoints.
 */
public final class SpanprofCustomizer implements AutoConfigurationCustomizerProvider {
  @Override
  public void customize(AutoConfigurationCustomizer configuration) {
    configuration.addTracerProviderCustomizer(
        (builder, properties) -> builder.addSpanProcessor(new LocalRootProcessor()));
  }
}
