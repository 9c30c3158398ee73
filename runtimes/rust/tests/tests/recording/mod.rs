//! Recording a program with the spanprof command, and reading what it says. SPANPROF_COMMAND names
//! the command; without it the tests that need it say that they are skipped.

#![allow(dead_code)] // Each test uses a part of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// None: the test cannot run, and has said so.
pub fn spanprof_command() -> Option<PathBuf> {
    let command = std::env::var_os("SPANPROF_COMMAND").map(PathBuf::from);
    if command.is_none() {
        println!("skipped: SPANPROF_COMMAND does not name the spanprof command");
    }
    command
}

pub struct Recording {
    command: PathBuf,
    folder: tempfile::TempDir,
}

impl Recording {
    pub fn new() -> Option<Recording> {
        Some(Recording {
            command: spanprof_command()?,
            folder: tempfile::tempdir().unwrap(),
        })
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("run.coro")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn spanprof(&self) -> Command {
        let mut command = Command::new(&self.command);
        // What a killed one leaves behind goes with the test's folder.
        command
            .env("TMPDIR", self.folder.path())
            .env_remove("XDG_RUNTIME_DIR");
        command
    }

    /// Runs a program under `spanprof coro record`; what it printed.
    pub fn record(&self, program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let output = self
            .spanprof()
            .args(["coro", "record", "-o"])
            .arg(self.file())
            .arg("--")
            .arg(program)
            .args(arguments)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn report(&self, options: &[&str]) -> Value {
        self.report_of(&self.file(), options)
    }

    pub fn report_of(&self, file: &Path, options: &[&str]) -> Value {
        let mut command = self.spanprof();
        let output = command
            .args(["coro", "report", "--json"])
            .args(options)
            .arg(file)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Each event: "kind name place", in order of time.
    pub fn events(&self) -> Vec<String> {
        self.events_of(&self.file())
    }

    pub fn events_of(&self, file: &Path) -> Vec<String> {
        let output = self
            .spanprof()
            .args(["coro", "export", "-f", "csv"])
            .arg(file)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        let lines = String::from_utf8(output.stdout).unwrap();
        lines
            .lines()
            .skip(1)
            .map(|line| {
                let fields: Vec<_> = line.splitn(5, ',').collect();
                fields[4]
                    .replace("\",\"", " ")
                    .replace(",\"", " ")
                    .replace('"', "")
                    .trim()
                    .into()
            })
            .collect()
    }
}

pub fn text(output: &Output) -> String {
    format!(
        "{}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

pub fn counter(report: &Value, name: &str) -> u64 {
    report["counters"][name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name} in {report:#}"))
}
