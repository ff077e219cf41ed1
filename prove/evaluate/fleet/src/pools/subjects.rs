//! The servers that hand requests over, and how to make and start them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use luc_harness::error::EvaluateError;
use luc_harness::harness::Harness;

use crate::program::bound;
use crate::running::Running;

/// A server, and how it is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    pub(super) name: &'static str,
    program: Program,
    pub(super) clients: u64,
    /// Number of calls for each request.
    calls: u64,
    /// Last argument: workers of its pool, or maximum connections to the back end.
    setting: Option<u64>,
    /// Whether requests carry a traceparent, which it passes on, and the recorder looks for it.
    pub(super) has_tokens: bool,
    /// Whether OpenTelemetry's instrumentation writes spans of its requests and calls.
    pub(super) has_spans: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Program {
    Java,
    Go,
    Node,
    NodeWithSpans,
    Asyncio,
    PythonPool,
    Nginx,
}

const fn subject(
    name: &'static str,
    program: Program,
    [clients, calls]: [u64; 2],
    setting: Option<u64>,
) -> Subject {
    Subject {
        name,
        program,
        clients,
        calls,
        setting,
        has_tokens: false,
        has_spans: matches!(program, Program::NodeWithSpans),
    }
}

/// Returns a subject with a traceparent in its requests.
const fn with_tokens(name: &'static str, subject: Subject) -> Subject {
    Subject { name, has_tokens: true, ..subject }
}

const GO: Subject = subject("Go", Program::Go, [8, 3], None);
const NGINX: Subject = subject("nginx", Program::Nginx, [8, 1], None);

pub(super) const SUBJECTS: [Subject; 15] = [
    subject("Java pool, 16 workers", Program::Java, [8, 3], Some(16)),
    subject("Java pool, 2 workers", Program::Java, [8, 3], Some(2)),
    subject("Java pool, 4 workers", Program::Java, [16, 3], Some(4)),
    subject("Python pool, 16 workers", Program::PythonPool, [8, 3], Some(16)),
    subject("Python pool, 2 workers", Program::PythonPool, [8, 3], Some(2)),
    GO,
    with_tokens("Go, traceparent", GO),
    subject("Node", Program::Node, [8, 3], Some(0)),
    subject("Node, 4 connections", Program::Node, [8, 3], Some(4)),
    subject("Node, OpenTelemetry", Program::NodeWithSpans, [8, 3], Some(0)),
    subject("Node, 4 connections, OpenTelemetry", Program::NodeWithSpans, [8, 3], Some(4)),
    subject("asyncio", Program::Asyncio, [8, 3], Some(0)),
    subject("asyncio, 4 connections", Program::Asyncio, [8, 3], Some(4)),
    NGINX,
    with_tokens("nginx, traceparent", NGINX),
];

/// Library that is loaded before an instrumented server, and the packages that it needs.
const INSTRUMENTATION: &str = "opentelemetry.js";
const PACKAGES: [&str; 4] = [
    "@opentelemetry/api@1.9.1",
    "@opentelemetry/instrumentation-http@0.223.0",
    "@opentelemetry/otlp-transformer@0.223.0",
    "@opentelemetry/sdk-trace-node@2.12.0",
];

/// Returns the file of an instrumented server's spans.
pub(super) fn spans_of(harness: &Harness) -> PathBuf {
    harness.path("spans.json")
}

const PYTHON: &str = "/usr/bin/python3";

impl Program {
    /// Returns the name of its source's file, and the source.
    fn source(self) -> (&'static str, &'static str) {
        macro_rules! source {
            ($name:literal) => {
                ($name, include_str!(concat!("../../subjects/", $name)))
            };
        }
        match self {
            Self::Java => source!("FixedPool.java"),
            Self::Go => source!("goroutines.go"),
            Self::Node | Self::NodeWithSpans => source!("event_loop.js"),
            Self::Asyncio => source!("event_loop.py"),
            Self::PythonPool => source!("thread_pool.py"),
            Self::Nginx => source!("proxy.conf"),
        }
    }

    /// Returns the command that prints its version.
    fn version(self) -> [&'static str; 2] {
        match self {
            Self::Java => ["java", "--version"],
            Self::Go => ["go", "version"],
            Self::Node | Self::NodeWithSpans => ["node", "--version"],
            Self::Asyncio | Self::PythonPool => [PYTHON, "--version"],
            Self::Nginx => ["nginx", "-v"],
        }
    }

    fn folder(self, harness: &Harness) -> PathBuf {
        let name = match self {
            Self::NodeWithSpans => "instrumented",
            _ => self.source().0,
        };
        harness.path(&format!("{name}.made"))
    }
}

impl Subject {
    pub(super) fn program(&self) -> Program {
        self.program
    }

    /// Starts it. It listens soon.
    pub(super) fn start(
        &self,
        harness: &Harness,
        port: u16,
        back_end: u16,
    ) -> Result<Running, EvaluateError> {
        let folder = self.program.folder(harness);
        let file = folder.join(self.program.source().0);
        let mut command = bound("TERM", false);
        command.current_dir(&folder);
        match self.program {
            Program::Java => command.args(["java", "-cp", ".", "FixedPool"]),
            Program::Go => command.arg(folder.join("goroutines")),
            Program::Node => command.arg("node").arg(&file),
            Program::NodeWithSpans => {
                command.env("SPANS", spans_of(harness));
                let library = folder.join(INSTRUMENTATION);
                command.args(["node", "--require"]).arg(library).arg(&file)
            }
            Program::Asyncio | Program::PythonPool => command.arg(PYTHON).arg(&file),
            Program::Nginx => {
                let (_, text) = self.program.source();
                let text = text
                    .replace("BACK_END", &back_end.to_string())
                    .replace("PORT", &port.to_string());
                fs::write(&file, text).map_err(EvaluateError::file("write", &file))?;
                command.args(["nginx", "-e", "stderr", "-p", ".", "-c", "proxy.conf"])
            }
        };
        if self.program != Program::Nginx {
            let numbers = [u64::from(port), u64::from(back_end), self.calls];
            let numbers = numbers.into_iter().chain(self.setting);
            command.args(numbers.map(|number| number.to_string()));
        }
        Running::start(command, &harness.path("subject.log"))
    }
}

/// Makes a program, and returns its version.
pub(super) fn make(harness: &Harness, program: Program) -> Result<String, EvaluateError> {
    let folder = program.folder(harness);
    fs::create_dir(&folder).map_err(EvaluateError::file("make", &folder))?;
    let (name, source) = program.source();
    let file = folder.join(name);
    fs::write(&file, source).map_err(EvaluateError::file("write", &file))?;
    if let Some(mut command) = compiler(program, &folder) {
        command.current_dir(&folder).arg(name);
        harness.execute(&mut command, &[0])?;
    }
    if program == Program::NodeWithSpans {
        instrument(harness, &folder)?;
    }
    let [words, option] = program.version();
    let finished = harness.execute(Command::new(words).arg(option), &[0])?;
    // nginx says it as an error.
    let said = if finished.stdout.is_empty() { finished.said } else { finished.stdout };
    Ok(said.lines().next().unwrap_or_default().to_owned())
}

/// Installs OpenTelemetry's packages for Node into a folder, from npm's registry.
fn instrument(harness: &Harness, folder: &Path) -> Result<(), EvaluateError> {
    let library = folder.join(INSTRUMENTATION);
    let source = include_str!("../../subjects/opentelemetry.js");
    fs::write(&library, source).map_err(EvaluateError::file("write", &library))?;
    let mut command = Command::new("npm");
    command.current_dir(folder).env("HOME", folder);
    command.args(["install", "--silent", "--no-audit", "--no-fund"]);
    command.args(["--ignore-scripts", "--prefix", "."]).args(PACKAGES);
    harness.execute(&mut command, &[0])?;
    Ok(())
}

/// Returns the compiler of the source in this folder; `None` if it needs none.
fn compiler(program: Program, folder: &Path) -> Option<Command> {
    let (name, words): (&str, &[&str]) = match program {
        Program::Java => ("javac", &[]),
        Program::Go => ("go", &["build", "-o", "goroutines"]),
        Program::Node
        | Program::NodeWithSpans
        | Program::Asyncio
        | Program::PythonPool
        | Program::Nginx => return None,
    };
    let mut command = Command::new(name);
    command.args(words);
    // Nothing of it is left elsewhere.
    command.env("GOCACHE", folder.join("cache"));
    command.env("GOPATH", folder.join("path"));
    command.env("GO111MODULE", "off").env("CGO_ENABLED", "0");
    Some(command)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_of_one_subject_each() {
        let names: BTreeSet<&str> = SUBJECTS.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), SUBJECTS.len());
    }
}
