//! Either side is killed at any moment: the target goes on, the next harvester takes over, nothing
//! that was published is missing, and every file is readable. SPANPROF_STRESS_SECONDS makes the
//! rounds more.

mod recording;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use recording::{counter, Recording};

fn rounds() -> u64 {
    let seconds = std::env::var("SPANPROF_STRESS_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse::<u64>().ok());
    seconds.map_or(30, |seconds| (seconds * 10).max(30))
}

/// Prints a line for each hundred tasks.
fn endless(command: &mut Command) -> Child {
    command
        .args(["100", "20", "2", "forever"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn moment(round: u64) -> Duration {
    Duration::from_millis(5 + round * 7919 % 60)
}

#[test]
fn a_target_survives_its_harvesters() {
    let Some(recording) = Recording::new() else {
        return;
    };
    let mut target = endless(&mut Command::new(env!("CARGO_BIN_EXE_accounting")));
    let mut lines = BufReader::new(target.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap(); // it has traced futures
                                    // Its output has to be taken all the time.
    let reader = std::thread::spawn(move || lines.map_while(Result::ok).count());
    let pid = target.id().to_string();
    let harvest = |name: &str| {
        let mut command = recording.spanprof();
        let file = recording.folder().join(name);
        command.args(["coro", "record", "-p", &pid, "-o"]).arg(file);
        command.stderr(Stdio::null());
        command
    };
    for round in 0..rounds() {
        let mut harvester = harvest(&round.to_string()).spawn().unwrap();
        sleep(moment(round));
        harvester.kill().unwrap();
        harvester.wait().unwrap();
    }
    assert!(target.try_wait().unwrap().is_none(), "the target has ended");
    // It publishes nothing more while the last one takes what is there.
    send(target.id(), libc::SIGSTOP);
    let last = harvest("last").args(["-d", "300ms"]).status().unwrap();
    assert!(last.success());
    target.kill().unwrap();
    target.wait().unwrap();
    assert!(reader.join().unwrap() > 0);
    let last = recording.folder().join("last");
    let report = recording.report_of(&last, &[]);
    assert_eq!(report["complete"], true);
    assert_eq!(counter(&report, "events_lost_ring_full"), 0);
    let mut kept = recording.events_of(&last).len();
    for round in 0..rounds() {
        let file = recording.folder().join(round.to_string());
        // One that was killed before it began has nothing to say.
        if file.metadata().is_ok_and(|file| file.len() > 8) {
            recording.report_of(&file, &[]);
            kept += recording.events_of(&file).len();
        }
    }
    // What one had written down and not yet taken out of the ring, the next one has too.
    let published = counter(&report, "events_written_to_rings");
    assert!(kept as u64 >= published, "{kept} of {published}");
    println!("{published} published, {kept} in the files");
}

#[test]
fn what_a_killed_target_published_is_kept() {
    let Some(recording) = Recording::new() else {
        return;
    };
    for round in 0..rounds() {
        let file = recording.folder().join(round.to_string());
        let mut command = recording.spanprof();
        command.args(["coro", "record", "-o"]).arg(&file).arg("--");
        let mut harvester = endless(command.arg(env!("CARGO_BIN_EXE_accounting")));
        let mut output = BufReader::new(harvester.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap(); // a hundred tasks have ended
        let target = child_of(harvester.id());
        sleep(moment(round) / 3);
        send(target, libc::SIGKILL);
        drop(output);
        harvester.wait().unwrap();
        let report = recording.report_of(&file, &[]);
        assert_eq!(report["complete"], true);
        assert_eq!(
            counter(&report, "events_received"),
            counter(&report, "events_written_to_rings")
        );
        // The line was printed after these events.
        assert!(counter(&report, "events_received") + report["lost"].as_u64().unwrap() > 100 * 42);
        std::fs::remove_file(file).unwrap();
    }
}

/// To a process of ours that nobody has waited for yet.
fn send(process: u32, signal: i32) {
    // SAFETY: it touches no memory.
    #[allow(unsafe_code)]
    let result = unsafe { libc::kill(process as libc::pid_t, signal) };
    assert_eq!(result, 0);
}

fn child_of(parent: u32) -> u32 {
    let path = format!("/proc/{parent}/task/{parent}/children");
    std::fs::read_to_string(path)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap()
}
