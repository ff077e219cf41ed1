//! Programs of many callers, and what they say of themselves.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value;

use crate::common::{EmulatedTestDisk, compiled_statically, stderr, until};

/// Counts of a crowd's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CrowdCounts {
    pub(crate) calls: u64,
    /// Calls above the limit.
    pub(crate) slow: u64,
    pub(crate) failed: u64,
    pub(crate) longest_ms: u64,
}

impl CrowdCounts {
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
pub(crate) struct NotifyDisk {
    pub(crate) disk: EmulatedTestDisk,
    pub(crate) notified: String,
}

impl NotifyDisk {
    /// `None`, and a line that says why, where it cannot be had.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let disk = EmulatedTestDisk::new(&format!("notify-{test}"), "ext4", "")?;
        let notified = disk.path("notified");
        compiled_statically(&source("notified.c"), Path::new(&notified)).then_some(())?;
        Some(Self { disk, notified })
    }

    /// Compiles a source with these options into a program of this name.
    pub(crate) fn compile(&self, name: &str, file: &str, options: &[&str]) -> String {
        self.compile_all(name, &[file], options)
    }

    /// Compiles several sources into one program.
    pub(crate) fn compile_all(&self, name: &str, files: &[&str], options: &[&str]) -> String {
        let program = self.disk.path(name);
        let compiled = Command::new("cc")
            .args(options)
            .args(["-pthread", "-o", &program])
            .args(files.iter().map(|file| source(file)))
            .status();
        assert!(compiled.expect("cc starts").success());
        program
    }

    /// `luc run OPTIONS -- PROGRAM` on the disk.
    pub(crate) fn run(&self, options: &[&str], program: &[&str]) -> Command {
        let mut command = self.disk.command(&["run", "--no-why"]);
        command.args(options).arg("--").args(program).current_dir(self.disk.mount());
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

    /// A program that runs beside the test.
    pub(crate) fn start(&self, options: &[&str], program: &[&str]) -> NotifyRun {
        let luc = self.run(options, program).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        NotifyRun { luc: luc.expect("luc starts"), program: None, over: self.over() }
    }

    /// A crowd that runs beside the test, until the test ends it.
    pub(crate) fn start_crowd(&self, options: &[&str], threads: &str) -> NotifyRun {
        self.start(options, &self.crowd(threads, FOR_EVER_MS))
    }

    /// The file that ends all crowds when it is there.
    pub(crate) fn over(&self) -> PathBuf {
        Path::new(&self.disk.mount()).join("over")
    }

    /// Waits until a crowd has begun a call: it counts one at least.
    pub(crate) fn until_called(&self) {
        until("the first call", || {
            let files = std::fs::read_dir(self.disk.mount()).expect("readable");
            files.flatten().any(|file| {
                let is_crowd = file.file_name().to_string_lossy().starts_with("crowd-");
                is_crowd && file.metadata().is_ok_and(|file| file.len() > 0)
            })
        });
    }
}

/// The time of a crowd that is ended by the test, in milliseconds.
pub(crate) const FOR_EVER_MS: &str = "600000";

/// A `luc run` beside the test. None of it stays if the test fails.
pub(crate) struct NotifyRun {
    luc: Child,
    program: Option<u32>,
    over: PathBuf,
}

impl NotifyRun {
    /// The process number of `luc run`.
    pub(crate) fn id(&self) -> u32 {
        self.luc.id()
    }

    /// Waits until the command is executed.
    pub(crate) fn until_executed(&mut self) {
        until("the program", || {
            let found = children(self.luc.id());
            let program = found.iter().find(|(_, name)| name == "notified");
            self.program = program.map(|&(number, _)| number);
            program.is_some()
        });
    }

    /// Ends a crowd: what it counted.
    pub(crate) fn end(&mut self) -> CrowdCounts {
        std::fs::write(&self.over, "").expect("written");
        let counted = self.counted();
        std::fs::remove_file(&self.over).expect("removed");
        counted
    }

    /// Returns the counts of a crowd, once everybody who had its output has ended.
    pub(crate) fn counted(&mut self) -> CrowdCounts {
        let mut text = String::new();
        let output = self.luc.stdout.as_mut().expect("piped");
        output.read_to_string(&mut text).expect("text");
        CrowdCounts::of(&text)
    }

    /// Exit status of `luc run`, once it ended.
    pub(crate) fn status(&mut self) -> ExitStatus {
        self.luc.wait().expect("waited for")
    }
}

impl Drop for NotifyRun {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = std::fs::write(&self.over, "");
            if let Some(program) = self.program.filter(|&program| is_crowd(program)) {
                let number = program.to_string();
                let _ = Command::new("kill").args(["-KILL", &number]).status();
            }
            let _ = self.luc.kill();
        }
        let _ = self.luc.wait();
    }
}

fn is_crowd(process: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
    name.is_ok_and(|name| name.trim_end() == "notified")
}

/// The number of calls that went through rounds.
pub(crate) fn gated(report: &Value) -> u64 {
    report["file_systems"][0]["gate"]["gated"].as_u64().unwrap_or(0)
}

/// The path of a program's source.
pub(crate) fn source(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
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
    let sent = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(sent.expect("kill runs").success());
}
