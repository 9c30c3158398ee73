//! `spanprof coro report` on tokio tasks with a planted mistake: it names that and nothing else,
//! and nothing where there is none.

mod recording;

use recording::Recording;
use serde_json::Value;

// Limits far from what the program plants and from what a busy machine does to a healthy one.
const LIMITS: &[&str] = &[
    "--stuck-after",
    "800ms",
    "--hog-after",
    "1200ms",
    "--leak-after",
    "800ms",
    "--late-after",
    "4s",
];

fn findings(mistake: &str) -> Option<Vec<Value>> {
    let recording = Recording::new()?;
    recording.record(env!("CARGO_BIN_EXE_planted_tokio"), &[mistake], &[]);
    let report = recording.report(LIMITS);
    assert_eq!(report["lost"], 0);
    assert_eq!(report["complete"], true);
    report["findings"].as_array().cloned()
}

fn only(findings: &[Value]) -> &Value {
    assert_eq!(findings.len(), 1, "{findings:#?}");
    &findings[0]
}

fn has(finding: &Value, field: &str, part: &str) {
    assert!(
        finding[field].as_str().unwrap().contains(part),
        "{field} of {finding:#}"
    );
}

#[test]
fn healthy_tasks_have_none() {
    let Some(findings) = findings("healthy") else {
        return;
    };
    assert_eq!(findings, Vec::<Value>::new());
}

#[test]
fn a_lost_wakeup_is_named_with_its_place_and_who_waits_for_it() {
    let Some(findings) = findings("lost_wakeup") else {
        return;
    };
    let finding = only(&findings);
    has(finding, "kind", "stuck");
    has(finding, "coroutine", "receiver");
    has(finding, "place", "planted_tokio.rs:");
    has(finding, "place", "planted_tokio::receive");
    has(finding, "evidence", "never resumed");
    has(finding, "evidence", "awaited by waiter");
}

#[test]
fn a_hog_is_named() {
    let Some(findings) = findings("hog") else {
        return;
    };
    let finding = only(&findings);
    has(finding, "kind", "hog");
    has(finding, "coroutine", "cruncher");
}

#[test]
fn a_leak_is_named() {
    let Some(findings) = findings("leak") else {
        return;
    };
    let finding = only(&findings);
    has(finding, "kind", "leak");
    has(finding, "coroutine", "kept");
}
