//! The events of futures with known fates, in their order.

mod recording;

use recording::Recording;

#[test]
fn every_fate_has_its_events() {
    let Some(recording) = Recording::new() else {
        return;
    };
    recording.record(env!("CARGO_BIN_EXE_lives"), &[], &[]);
    let events = recording.events();
    // Lines of the program's source, by what stands in them.
    let source = include_str!("../src/bin/lives.rs");
    let lines = |wanted: &str| -> Vec<String> {
        let lines = source
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains(wanted));
        lines
            .map(|(i, _)| format!("tests/src/bin/lives.rs:{}", i + 1))
            .collect()
    };
    let waits = lines("at(once_pending()).await");
    let (first, second, inner_wait) = (&waits[0], &waits[1], &waits[2]);
    let outer_wait = &lines("traced(inner())")[0];
    let cancelled = &lines("traced(pending::<()>())")[0];
    let by_hand = &lines("Poller::new")[0];
    let expected = [
        "birth finished",
        "resume finished",
        &format!("suspend finished {first}"),
        "resume finished",
        &format!("suspend finished {second}"),
        "resume finished",
        "done finished",
        "death finished",
        "birth cancelled",
        "resume cancelled",
        &format!("suspend cancelled {cancelled}"),
        "death cancelled",
        "birth never polled",
        "death never polled",
        "birth lives::outer",
        "resume lives::outer",
        "birth inner",
        "resume inner",
        &format!("suspend inner {inner_wait}"),
        &format!("suspend lives::outer {outer_wait}"),
        "awaits lives::outer station 4",
        "resume lives::outer",
        "resume inner",
        "done inner",
        "death inner",
        "done lives::outer",
        "death lives::outer",
        "birth panicking",
        "resume panicking",
        "death panicking",
        "birth by hand",
        "ready by hand",
        "resume by hand",
        &format!("yield by hand {by_hand}"),
        "resume by hand",
        &format!("suspend by hand {by_hand}"),
        "resume by hand",
        "done by hand",
        "death by hand",
    ];
    assert_eq!(events, expected);
}
