//! With `tracing-opentelemetry`, the ids that are published are those that the exporter gets.

use opentelemetry::trace::{TraceContextExt, TracerProvider};
use spanprof::context::{self, Context};
use spanprof::SpanLayer;
use tracing::info_span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;

#[test]
fn published_ids_are_those_of_opentelemetry() {
    context::init("").unwrap();
    let tracer = opentelemetry_sdk::trace::SdkTracerProvider::builder()
        .build()
        .tracer("test");
    let subscriber = tracing_subscriber::registry()
        .with(tracing_opentelemetry::layer().with_tracer(tracer))
        .with(SpanLayer::new());
    tracing::subscriber::with_default(subscriber, || {
        let outer = info_span!("outer");
        let inner = info_span!(parent: &outer, "inner");
        let published = inner.in_scope(Context::current);
        let expected = |span: &tracing::Span| {
            let context = span.context().span().span_context().clone();
            assert!(context.is_valid());
            context
        };
        let (outer, inner) = (expected(&outer), expected(&inner));
        let trace = u128::from_be_bytes(inner.trace_id().to_bytes());
        let span = u64::from_be_bytes(inner.span_id().to_bytes());
        let root = u64::from_be_bytes(outer.span_id().to_bytes());
        let mut wanted = Context::of_trace(trace, span, root);
        wanted.trace_flags = u32::from(inner.trace_flags().to_u8());
        assert_eq!(published, wanted);
    });
}
