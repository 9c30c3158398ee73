//! Every event is accounted for: what the harvester received and what was counted as lost are
//! together what tokio's tasks emitted, exactly.

mod recording;

use recording::{counter, Recording};

/// The program prints how many events it has emitted.
fn received_and_lost_are_all(program: &str, arguments: &[&str], variables: &[(&str, &str)]) {
    let Some(recording) = Recording::new() else {
        return;
    };
    let printed = recording.record(program, arguments, variables);
    let emitted: u64 = printed.trim().parse().unwrap();
    let report = recording.report(&[]);
    let lost = counter(&report, "events_lost_ring_full") + counter(&report, "events_lost_no_ring");
    assert_eq!(counter(&report, "events_received") + lost, emitted);
    assert!(counter(&report, "events_received") > 0);
    assert_eq!(counter(&report, "coroutines_untraced_no_station"), 0);
    assert_eq!(counter(&report, "impossible_ring_heads"), 0);
    println!("{emitted} emitted, {lost} lost");
}

fn of_tasks(tasks: &str, polls: &str, variables: &[(&str, &str)]) {
    let program = env!("CARGO_BIN_EXE_accounting");
    received_and_lost_are_all(program, &[tasks, polls, "2"], variables);
}

#[test]
fn of_one_task() {
    of_tasks("1", "200000", &[]);
}

#[test]
fn of_a_hundred_tasks() {
    of_tasks("100", "2000", &[]);
}

#[test]
fn of_ten_thousand_tasks() {
    of_tasks("10000", "20", &[]);
}

#[test]
fn of_a_hundred_thousand_tasks() {
    of_tasks("100000", "1", &[]);
}

#[test]
fn of_tasks_with_rings_that_overflow() {
    of_tasks("100", "2000", &[("SPANPROF_CORO_RING_RECORDS", "256")]);
}

// Threads take their rings at the same time.
#[test]
fn of_many_short_programs() {
    for _ in 0..20 {
        of_tasks("20", "20", &[]);
    }
}

#[test]
fn of_threads_that_come_and_go() {
    received_and_lost_are_all(env!("CARGO_BIN_EXE_short_threads"), &[], &[]);
}
