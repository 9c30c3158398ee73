//! What `SpanLayer` publishes: the entered span, its root and its tags, and at the exit what was
//! there before.

use spanprof::context::{self, Context};
use spanprof::SpanLayer;
use tracing::info_span;
use tracing_subscriber::layer::SubscriberExt;

fn with_layer(test: impl FnOnce()) {
    context::init("").unwrap();
    let layer = SpanLayer::new().with_tag("tenant");
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), test);
    assert_eq!(
        Context::current(),
        Context::NONE,
        "something was left behind"
    );
}

fn tenant() -> u32 {
    Context::current().tags[context::attribute("tenant").unwrap() as usize]
}

#[test]
fn a_span_inside_another_has_its_root() {
    with_layer(|| {
        let outer = info_span!("outer", spanprof.span_id = 7u64).entered();
        assert_eq!(Context::current(), Context::of_span(7, 7));
        {
            let _inner = info_span!("inner", spanprof.span_id = 8u64).entered();
            assert_eq!(Context::current(), Context::of_span(8, 7));
        }
        assert_eq!(Context::current(), Context::of_span(7, 7));
        drop(outer);
    });
}

#[test]
fn a_span_without_an_id_gets_one_that_is_its_own() {
    with_layer(|| {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            // Closed each time: its number in the registry is used again.
            let _span = info_span!("one").entered();
            assert!(seen.insert(Context::current().span_id));
        }
        assert!(!seen.contains(&0));
    });
}

#[test]
fn a_span_keeps_its_id_when_it_is_entered_again_on_another_thread() {
    context::init("").unwrap();
    let subscriber = std::sync::Arc::new(tracing_subscriber::registry().with(SpanLayer::new()));
    let span = tracing::subscriber::with_default(subscriber.clone(), || info_span!("one"));
    let id = span.in_scope(|| Context::current().span_id);
    let other = std::thread::spawn(move || span.in_scope(|| Context::current().span_id));
    assert_ne!(id, 0);
    assert_eq!(other.join().unwrap(), id);
}

#[test]
fn spans_may_be_left_in_any_order() {
    with_layer(|| {
        let first = info_span!("first", spanprof.span_id = 1u64).entered();
        let second = info_span!("second", spanprof.span_id = 2u64).entered();
        drop(first);
        assert_eq!(Context::current().span_id, 2);
        drop(second);
        assert_eq!(Context::current().span_id, 0);
    });
}

#[test]
fn what_was_active_outside_is_the_root_and_comes_back() {
    with_layer(|| {
        let outside = Context::of_trace(0x1234, 5, 4);
        outside.set();
        {
            let _span = info_span!("inside", spanprof.span_id = 6u64).entered();
            assert_eq!(Context::current(), Context::of_trace(0x1234, 6, 4));
        }
        assert_eq!(Context::current(), outside);
        {
            let _root = info_span!(parent: None, "alone", spanprof.span_id = 6u64).entered();
            assert_eq!(Context::current(), Context::of_span(6, 6));
        }
        Context::clear();
    });
}

#[test]
fn fields_are_tags_of_a_span_and_those_inside_it() {
    with_layer(|| {
        let outer = info_span!("outer", tenant = "acme");
        outer.in_scope(|| {
            assert_eq!(tenant(), context::intern("acme"));
            info_span!("inner").in_scope(|| assert_eq!(tenant(), context::intern("acme")));
            info_span!("inner", tenant = 7).in_scope(|| assert_eq!(tenant(), context::intern("7")));
        });
        outer.record("tenant", "globex");
        outer.in_scope(|| assert_eq!(tenant(), context::intern("globex")));
    });
}
