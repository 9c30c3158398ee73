//! Joining a program that runs already, programs that fork, and harvesters that are not ours.

mod recording;

use std::io::Read;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use recording::{counter, text, Recording};

/// Healthy tasks, for longer than any test.
fn long_running() -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_planted_tokio"));
    command.args(["healthy", "100"]).spawn().unwrap()
}

#[test]
fn a_program_that_runs_already_shows_its_tasks() {
    let Some(recording) = Recording::new() else {
        return;
    };
    let mut target = long_running();
    let mut listed = String::new();
    // It may not have spawned its first task yet.
    for _ in 0..20 {
        let mut command = recording.spanprof();
        let pid = target.id().to_string();
        let output = command
            .args(["coro", "ps", "--for", "50", &pid])
            .output()
            .unwrap();
        listed = text(&output);
        if listed.contains("ticker") {
            break;
        }
    }
    assert!(listed.contains("listener"), "{listed}");
    assert!(listed.contains("suspended"), "{listed}");
    assert!(listed.contains("planted_tokio.rs:"), "{listed}");
    assert!(target.try_wait().unwrap().is_none(), "the target has ended");
    target.kill().unwrap();
    target.wait().unwrap();
}

#[test]
fn a_program_that_is_joined_late_has_its_tasks_adopted() {
    let Some(recording) = Recording::new() else {
        return;
    };
    let mut target = long_running();
    let pid = target.id().to_string();
    let record = |file: &str| {
        let file = recording.folder().join(file);
        let mut command = recording.spanprof();
        command.args(["coro", "record", "-d", "200ms", "-p", &pid, "-o"]);
        let status = command.arg(&file).stderr(Stdio::null()).status().unwrap();
        status.success().then(|| recording.report_of(&file, &[]))
    };
    // It may not have spawned its first task yet.
    let first = (0..20).find_map(|attempt| record(&attempt.to_string()));
    let first = first.expect("a recording");
    let second = record("second").expect("a recording");
    for report in [first, second] {
        assert!(counter(&report, "coroutines_adopted") >= 10, "{report:#}");
        assert!(counter(&report, "events_received") > 100, "{report:#}");
    }
    assert!(target.try_wait().unwrap().is_none(), "the target has ended");
    target.kill().unwrap();
    target.wait().unwrap();
}

#[test]
fn a_forked_child_has_events_of_its_own() {
    let Some(recording) = Recording::new() else {
        return;
    };
    recording.record(env!("CARGO_BIN_EXE_forking"), &["once"], &[]);
    let events = recording.events();
    let count = |kind: &str| {
        events
            .iter()
            .filter(|event| event.starts_with(kind))
            .count()
    };
    // 150 polls in the parent, and 100 more in the child, which had the future from its parent.
    assert_eq!(count("birth"), 1);
    assert_eq!(count("adopted"), 1);
    assert_eq!(count("resume"), 250);
    assert_eq!(count("suspend"), 248);
    assert_eq!(count("done"), 2);
    assert_eq!(count("death"), 2);
}

#[test]
fn forks_among_threads_leave_no_child_without_its_events() {
    let Some(recording) = Recording::new() else {
        return;
    };
    recording.record(env!("CARGO_BIN_EXE_forking"), &["often"], &[]);
    let events = recording.events();
    for kind in ["birth", "resume", "done", "death"] {
        let event = format!("{kind} of a child");
        assert_eq!(
            events.iter().filter(|one| **one == event).count(),
            40,
            "{kind}"
        );
    }
}

// ---- A harvester that knows nothing but the specification of cTP 1.0 ----

const STATION: usize = 1024;

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// What the specification says that such a harvester has put into the file.
fn foreign_file(stations: u32, sleeping: u32) -> Vec<u8> {
    let mut bytes = vec![0; STATION * (stations as usize + 1)];
    bytes[0..8].copy_from_slice(&0x434F_524F_5452_4352u64.to_le_bytes());
    bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
    bytes[12..16].copy_from_slice(&stations.to_le_bytes());
    bytes[20..24].copy_from_slice(&sleeping.to_le_bytes());
    bytes
}

#[test]
fn a_foreign_harvester_finds_events_in_station_slots() {
    let folder = tempfile::tempdir().unwrap();
    let (area, socket) = (folder.path().join("area"), folder.path().join("socket"));
    std::fs::write(&area, foreign_file(4, 1)).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_lives"))
        .env("CTP_SHM_PATH", &area)
        .env("CTP_SOCK_PATH", &socket)
        .status()
        .unwrap();
    assert!(status.success());
    let mut byte = [0];
    listener.accept().unwrap().0.read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"1", "a sleeping harvester is woken by this byte");
    let bytes = std::fs::read(&area).unwrap();
    // Seven futures wanted one of four stations.
    assert_eq!(u32::from_le_bytes(bytes[16..20].try_into().unwrap()), 7);
    let finished = &bytes[STATION..2 * STATION];
    assert_eq!(finished[0x10], 1, "it is dead");
    assert_eq!(&finished[0x40 + 0x20..][..8], b"order 7\0", "the payload");
    let mut events: Vec<_> = (0..8)
        .map(|slot| &finished[0x40 + slot * 64..0x80 + slot * 64])
        .filter(|slot| word(slot, 0x18) != 0)
        .map(|slot| (word(slot, 0x18), slot[0x3F], word(slot, 0)))
        .collect();
    events.sort_unstable();
    // resume, suspend, resume, suspend, resume, done
    let sequences: Vec<_> = events.iter().map(|event| (event.0, event.1)).collect();
    assert_eq!(
        sequences,
        [(2, 1), (4, 0), (6, 1), (8, 0), (10, 1), (12, 0)]
    );
    assert!(
        events.windows(2).all(|pair| pair[0].2 <= pair[1].2),
        "time stamps ascend"
    );
}

#[test]
fn a_harvester_that_has_gone_does_not_end_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let (area, socket) = (folder.path().join("area"), folder.path().join("socket"));
    std::fs::write(&area, foreign_file(200, 1)).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    // Takes each connection and closes it at once; asks for wakeups all the time.
    let file = std::fs::OpenOptions::new().write(true).open(&area).unwrap();
    let closer = std::thread::spawn(move || {
        drop(listener.accept());
        drop(listener);
    });
    let mut target = Command::new(env!("CARGO_BIN_EXE_accounting"))
        .args(["100", "2000", "2"])
        .env("CTP_SHM_PATH", &area)
        .env("CTP_SOCK_PATH", &socket)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let status = loop {
        std::os::unix::fs::FileExt::write_all_at(&file, &1u32.to_le_bytes(), 20).unwrap();
        if let Some(status) = target.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.signal(), None);
    assert!(status.success());
    closer.join().unwrap();
}

#[test]
fn files_that_are_no_shared_memory_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let area = folder.path().join("area");
    std::fs::write(&area, foreign_file(4, 0)).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&area, &link).unwrap();
    let short = folder.path().join("short");
    std::fs::write(&short, b"COROTRCR").unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, vec![7; 8192]).unwrap();
    for path in [
        &link,
        &short,
        &other,
        &folder.path().to_path_buf(),
        &folder.path().join("no"),
    ] {
        let status = Command::new(env!("CARGO_BIN_EXE_lives"))
            .env("CTP_SHM_PATH", path)
            .status()
            .unwrap();
        assert!(status.success(), "{}", path.display());
    }
    assert_eq!(
        std::fs::read(&area).unwrap(),
        foreign_file(4, 0),
        "a link was followed"
    );
    assert_eq!(std::fs::read(&short).unwrap(), b"COROTRCR");
    assert_eq!(std::fs::read(&other).unwrap(), vec![7; 8192]);
}
