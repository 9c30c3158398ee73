//! The span that the crate `tracing` has entered, published as the thread's context.

use core::cell::RefCell;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::hash::{BuildHasher, RandomState};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::Subscriber;
use tracing_subscriber::layer::{Context as LayerContext, Layer};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::context::{self, Context};

/// A layer that makes each entered span the thread's active span, and at its exit gives the thread
/// back what it had.
///
/// ```no_run
/// use tracing_subscriber::layer::SubscriberExt;
/// use tracing_subscriber::util::SubscriberInitExt;
/// spanprof::context::init("").expect("libspanprof");
/// tracing_subscriber::registry()
///     .with(spanprof::SpanLayer::new().with_tag("tenant"))
///     .init();
/// ```
///
/// A span's id is, in this order: the field `spanprof.span_id` that it was made with (a `u64`); the
/// OpenTelemetry span id, with the trace id and flags, if the feature `opentelemetry` is on and
/// `tracing-opentelemetry` has given it one; a new number that no other span of the process has.
/// (`tracing`'s own ids are used again when a span is closed, so samples of different spans would
/// be mixed up.) Its local root is the outermost span around it, or the root of the context that
/// was active when that was made.
#[derive(Default)]
pub struct SpanLayer {
    tags: Vec<(&'static str, u32)>,
    #[cfg(feature = "opentelemetry")]
    dispatch: std::sync::OnceLock<tracing::dispatcher::WeakDispatch>,
}

/// What a span has until it is entered for the first time.
struct Unresolved {
    /// What was active when it was made, if no span is around it.
    outside: Context,
    given_id: Option<u64>,
    tags: [u32; 10],
}

/// What is published when it is entered.
#[derive(Clone, Copy)]
struct Resolved(Context);

struct Entered {
    span: Id,
    before: Context,
}

thread_local! {
    /// The spans that this thread is in. They may be left in any order.
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
}

impl SpanLayer {
    /// Without tags.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Publishes the field of this name, of a span and those inside it, as a tag. For one of more
    /// than ten tags there is no room; it is left out. Call `context::init` before.
    #[must_use]
    pub fn with_tag(mut self, field: &'static str) -> Self {
        if let Some(position) = context::attribute(field) {
            self.tags.push((field, position));
        }
        self
    }

    /// What to publish for a span. The first time it looks at the spans around it.
    fn resolve<'a, S>(&self, span: &SpanRef<'a, S>) -> Context
    where
        S: Subscriber + LookupSpan<'a>,
    {
        if let Some(Resolved(context)) = span.extensions().get::<Resolved>() {
            return *context;
        }
        let around = span.parent().map(|parent| self.resolve(&parent));
        let Some(unresolved) = span.extensions_mut().remove::<Unresolved>() else {
            return around.unwrap_or(Context::NONE); // made before the layer was there
        };
        let mut context = around.unwrap_or(unresolved.outside);
        match unresolved.given_id {
            Some(id) => context.span_id = id,
            None if self.take_opentelemetry_ids(span, &mut context) => {}
            None => context.span_id = new_span_id(),
        }
        if context.root_span_id == 0 {
            context.root_span_id = context.span_id;
        }
        for (tag, own) in context.tags.iter_mut().zip(unresolved.tags) {
            if own != 0 {
                *tag = own;
            }
        }
        span.extensions_mut().replace(Resolved(context));
        context
    }

    /// False: it has none.
    #[cfg(feature = "opentelemetry")]
    fn take_opentelemetry_ids<'a, S>(&self, span: &SpanRef<'a, S>, context: &mut Context) -> bool
    where
        S: LookupSpan<'a>,
    {
        use opentelemetry::trace::TraceContextExt;
        let Some(dispatch) = self.dispatch.get().and_then(|dispatch| dispatch.upgrade()) else {
            return false;
        };
        let Some(found) = tracing_opentelemetry::get_otel_context(&span.id(), &dispatch) else {
            return false;
        };
        let found = found.span().span_context().clone();
        if !found.is_valid() {
            return false;
        }
        let trace = u128::from_be_bytes(found.trace_id().to_bytes());
        context.trace_id_high = (trace >> 64) as u64;
        context.trace_id_low = trace as u64;
        context.trace_flags = u32::from(found.trace_flags().to_u8());
        context.span_id = u64::from_be_bytes(found.span_id().to_bytes());
        true
    }
    #[cfg(not(feature = "opentelemetry"))]
    #[expect(clippy::unused_self)]
    fn take_opentelemetry_ids<'a, S>(&self, _span: &SpanRef<'a, S>, _context: &mut Context) -> bool
    where
        S: LookupSpan<'a>,
    {
        false
    }
}

impl<S> Layer<S> for SpanLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    #[cfg(feature = "opentelemetry")]
    fn on_register_dispatch(&self, dispatch: &tracing::Dispatch) {
        let _ = self.dispatch.set(dispatch.downgrade());
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: LayerContext<'_, S>) {
        let Some(span) = context.span(id) else {
            return;
        };
        let mut fields = FieldsOfInterest::of(self);
        attributes.record(&mut fields);
        let (given_id, tags) = (fields.given_id, fields.tags);
        let stands_alone = attributes.is_root() || span.parent().is_some();
        let outside = if stands_alone {
            Context::NONE
        } else {
            Context::current()
        };
        span.extensions_mut().replace(Unresolved {
            outside,
            given_id,
            tags,
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: LayerContext<'_, S>) {
        let Some(span) = context.span(id) else {
            return;
        };
        let mut fields = FieldsOfInterest::of(self);
        values.record(&mut fields);
        let mut extensions = span.extensions_mut();
        // For its next entry. (It is one or the other.)
        if let Some(unresolved) = extensions.get_mut::<Unresolved>() {
            overwrite(&mut unresolved.tags, fields.tags);
        } else if let Some(Resolved(context)) = extensions.get_mut::<Resolved>() {
            overwrite(&mut context.tags, fields.tags);
        }
    }

    fn on_enter(&self, id: &Id, context: LayerContext<'_, S>) {
        let Some(span) = context.span(id) else {
            return;
        };
        let before = self.resolve(&span).exchange();
        let _ = ENTERED.try_with(|entered| {
            entered.borrow_mut().push(Entered {
                span: id.clone(),
                before,
            });
        });
    }

    fn on_exit(&self, id: &Id, _context: LayerContext<'_, S>) {
        let _ = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            let Some(position) = entered.iter().rposition(|one| one.span == *id) else {
                return;
            };
            let left = entered.remove(position);
            match entered.get_mut(position) {
                // Not the innermost: the one inside it goes on, and later gives back what this had.
                Some(inner) => inner.before = left.before,
                None => left.before.set(),
            }
        });
    }
}

fn overwrite(tags: &mut [u32; 10], with: [u32; 10]) {
    for (tag, new) in tags.iter_mut().zip(with) {
        if new != 0 {
            *tag = new;
        }
    }
}

struct FieldsOfInterest<'a> {
    layer: &'a SpanLayer,
    given_id: Option<u64>,
    tags: [u32; 10],
}

impl<'a> FieldsOfInterest<'a> {
    fn of(layer: &'a SpanLayer) -> Self {
        Self {
            layer,
            given_id: None,
            tags: [0; 10],
        }
    }
}

impl Visit for FieldsOfInterest<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "spanprof.span_id" {
            self.given_id = Some(value).filter(|id| *id != 0);
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let wanted = self
            .layer
            .tags
            .iter()
            .find(|(name, _)| *name == field.name());
        if let Some((_, position)) = wanted {
            if let Some(tag) = self.tags.get_mut(*position as usize) {
                *tag = context::intern(value);
            }
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self
            .layer
            .tags
            .iter()
            .any(|(name, _)| *name == field.name())
        {
            self.record_str(field, &format!("{value:?}"));
        }
    }
}

/// Different for each call in a process, and most probably in different processes.
fn new_span_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static SEED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let seed = *SEED.get_or_init(|| RandomState::new().hash_one(std::process::id()));
    loop {
        // An odd factor and shifts to the right: no two numbers become the same one.
        let mut id = seed.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        id = (id ^ (id >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        id = (id ^ (id >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        id ^= id >> 31;
        if id != 0 {
            return id;
        }
    }
}
