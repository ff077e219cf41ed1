//! Programs of many callers, and what they say of themselves.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::{Disk, compiled_statically, stderr};

/// What a crowd counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) calls: u64,
    /// Calls above the limit.
    pub(crate) slow: u64,
    pub(crate) failed: u64,
    pub(crate) longest_ms: u64,
}

impl Counted {
    /// The line that a crowd ends with.
    pub(crate) fn of(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let figure = |name: &str| -> u64 {
            let at = words.iter().position(|word| *word == name);
            let word = at.and_then(|at| words.get(at + 1));
            word.and_then(|word| word.parse().ok())
                .unwrap_or_else(|| panic!("no {name} in {text:?}"))
        };
        Self {
            calls: figure("calls"),
            slow: figure("slow"),
            failed: figure("failed"),
            longest_ms: figure("longest_ms"),
        }
    }

    /// Nothing failed, nothing hung.
    pub(crate) fn assert_unharmed(self) {
        assert!(self.calls > 0, "{self:?}");
        assert_eq!((self.slow, self.failed), (0, 0), "{self:?}");
    }
}

/// A call that takes longer hangs, in milliseconds.
pub(crate) const HANGS_MS: &str = "1000";

/// An emulated disk with ext4 on it, and the programs.
pub(crate) struct Place {
    pub(crate) disk: Disk,
    /// `notified`, linked statically.
    pub(crate) notified: String,
}

impl Place {
    /// `None`, and a line that says why, where it cannot be had.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let disk = Disk::new(&format!("notify-{test}"), "ext4", "")?;
        let notified = disk.path("notified");
        compiled_statically(&source("notified.c"), Path::new(&notified)).then_some(())?;
        Some(Self { disk, notified })
    }

    /// Compiles a source with these options into a program of this name.
    pub(crate) fn compile(&self, name: &str, file: &str, options: &[&str]) -> String {
        let program = self.disk.path(name);
        let compiled = Command::new("cc")
            .args(options)
            .args(["-pthread", "-o", &program])
            .arg(source(file))
            .status();
        assert!(compiled.expect("cc starts").success());
        program
    }

    /// `luc run OPTIONS -- PROGRAM` on the disk.
    pub(crate) fn run(&self, options: &[&str], program: &[&str]) -> Command {
        let mut command = self.disk.command(&["run", "--no-why"]);
        command
            .args(options)
            .arg("--")
            .args(program)
            .current_dir(self.disk.mount());
        command
    }

    /// The words of a crowd.
    pub(crate) fn crowd<'a>(&'a self, threads: &'a str, milliseconds: &'a str) -> Vec<&'a str> {
        vec![&self.notified, "crowd", threads, milliseconds, HANGS_MS]
    }

    /// Runs a program to its end: its output, the report on the disk, and what luc said.
    pub(crate) fn report(&self, options: &[&str], program: &[&str]) -> (String, Value, String) {
        let json = self.disk.path("report.json");
        let options = [options, &["--json", &json]].concat();
        let output = self.run(&options, program).output().expect("luc starts");
        let said = stderr(&output);
        assert!(output.status.success(), "{options:?} {program:?}: {said}");
        let report: Value =
            serde_json::from_slice(&std::fs::read(json).expect("report")).expect("JSON");
        let counted = String::from_utf8_lossy(&output.stdout).into_owned();
        (counted, report, said)
    }

    /// A crowd that runs beside the test.
    pub(crate) fn start(&self, options: &[&str], program: &[&str]) -> Child {
        self.run(options, program)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("luc starts")
    }
}

/// What a crowd counted that was started beside the test, once everybody who had its output has ended.
pub(crate) fn counted(run: &mut Child) -> Counted {
    let mut text = String::new();
    let output = run.stdout.as_mut().expect("piped");
    output.read_to_string(&mut text).expect("text");
    Counted::of(&text)
}

/// The number of calls that went through rounds.
pub(crate) fn gated(report: &Value) -> u64 {
    report["file_systems"][0]["gate"]["gated"]
        .as_u64()
        .unwrap_or(0)
}

/// The path of a program's source.
pub(crate) fn source(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

/// The processes below `luc run`, by the kernel's names.
pub(crate) fn children(process: u32) -> Vec<(u32, String)> {
    let children = format!("/proc/{process}/task");
    let threads = std::fs::read_dir(children).into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let numbers: Vec<u32> = lists
        .flat_map(|list| {
            let numbers: Vec<u32> = list.split_whitespace().flat_map(str::parse).collect();
            numbers
        })
        .collect();
    numbers
        .into_iter()
        .filter_map(|number| {
            let name = std::fs::read_to_string(format!("/proc/{number}/comm")).ok()?;
            Some((number, name.trim().to_owned()))
        })
        .collect()
}

/// Sends a signal by its name.
pub(crate) fn signal(name: &str, process: u32) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &process.to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
}
