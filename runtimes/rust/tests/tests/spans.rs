//! Futures that go from thread to thread, and the sampler: every sample in a function that works
//! under a span carries that span, and those of tasks without one carry none.

mod recording;

use recording::{text, Recording};
use serde_json::Value;
use std::process::Command;

#[derive(Default, Debug)]
struct Tally {
    right: u64,
    wrong: u64,
    without_span: u64,
}

fn samples_of(way: &str, storage: &str) -> Option<Tally> {
    let recording = Recording::new()?;
    let profile = recording.folder().join("profile.jfr");
    let program = env!("CARGO_BIN_EXE_spans");
    let run = Command::new(program)
        .args([way, storage])
        .arg(&profile)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", text(&run));
    let arguments = ["report", "--by", "span,function", "--json", "--limit", "0"];
    let output = recording
        .spanprof()
        .args(arguments)
        .arg(&profile)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut tally = Tally::default();
    for span in report["rows"].as_array().unwrap() {
        let id = u64::from_str_radix(span["name"].as_str().unwrap(), 16).unwrap_or(0);
        for function in span["rows"].as_array().unwrap() {
            let name = function["name"].as_str().unwrap();
            let number = name
                .strip_prefix("spans::work_")
                .and_then(|number| number.parse().ok());
            let Some(number) = number else { continue };
            let samples = function["total_count"].as_u64().unwrap();
            match (number, id) {
                (5, 0) => tally.without_span += samples,
                (number, id) if number == id => tally.right += samples,
                _ => tally.wrong += samples,
            }
        }
    }
    println!("{way}, {storage}: {tally:?}");
    Some(tally)
}

fn every_sample_has_its_span(way: &str, storage: &str) {
    let Some(tally) = samples_of(way, storage) else {
        return;
    };
    assert_eq!(tally.wrong, 0, "{tally:?}");
    assert!(tally.right > 20 && tally.without_span > 0, "{tally:?}");
}

#[test]
fn carried_by_futures() {
    every_sample_has_its_span("carried", "profiler");
}

#[test]
fn carried_by_futures_for_other_processes() {
    every_sample_has_its_span("carried", "otel");
}

#[test]
fn of_the_layer() {
    every_sample_has_its_span("layer", "profiler");
}

#[test]
fn of_the_layer_for_other_processes() {
    every_sample_has_its_span("layer", "otel");
}
