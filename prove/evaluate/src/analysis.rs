//! Part `analysis`: the speed of `luc explain` on one processor, and whether its memory grows with the trace.

use std::path::PathBuf;

use luc_harness::report::number;
use serde_json::{Value, json};

use crate::disks::{Disk, DiskSpec, EXT4};
use crate::error::EvaluateError;
use crate::harness::{Harness, count, directory_bytes, figure, line, parse};
use crate::progress::Progress;
use crate::synthetic;

/// Commits of the smallest generated trace, which has a million events.
const COMMITS: u64 = 2_250;
/// Memory limit for explaining the largest trace, which has more than this on disk.
const MEMORY_LIMIT_BYTES: u64 = 48 << 20;

/// A disk so fast that there is much to record.
const FAST_DISK: DiskSpec = DiskSpec {
    model: &["--model", "fixed", "--flush", "100us", "--write", "20us", "--read", "20us"],
    ..EXT4
};

#[derive(Debug)]
struct Subject {
    name: &'static str,
    path: PathBuf,
    events: u64,
    bytes: u64,
}

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(7);
    let seconds = harness.options.seconds.unwrap_or(20.0);
    let mut subjects = Vec::new();
    for (name, times) in
        [("made up, 1 million", 1), ("made up, 4 million", 4), ("made up, 16 million", 16)]
    {
        if harness.options.wants(name) {
            let path = harness.path(&format!("made-up-{times}"));
            let events = synthetic::write(&path, COMMITS * times)
                .map_err(|error| EvaluateError::Trace(Box::new(error)))?;
            subjects.push(subject(name, path, events)?);
        }
    }
    if harness.options.wants("recorded") {
        subjects.push(record(harness, seconds)?);
    }
    let mut progress = Progress::new(harness.part, repeats * subjects.len());
    for repeat in 0..repeats {
        for subject in &subjects {
            let found = explain(harness, subject, None)?;
            let per_processor_s = subject.events as f64 / figure(&found, "processor_s")?;
            keep(harness, subject, repeat, None, &found);
            progress.step(&format!("{}: {}/s", subject.name, number(per_processor_s)));
        }
    }
    let limited = subjects
        .iter()
        .filter(|subject| subject.bytes > MEMORY_LIMIT_BYTES)
        .max_by_key(|subject| subject.bytes);
    if let Some(subject) = limited {
        let found = explain(harness, subject, Some(MEMORY_LIMIT_BYTES))
            .unwrap_or_else(|error| json!({ "failure": error.to_string() }));
        keep(harness, subject, 0, Some(MEMORY_LIMIT_BYTES), &found);
    }
    Ok(())
}

fn subject(name: &'static str, path: PathBuf, events: u64) -> Result<Subject, EvaluateError> {
    Ok(Subject { name, bytes: directory_bytes(&path)?, path, events })
}

/// Records 64 threads that create, write and sync files on a fast disk.
fn record(harness: &Harness, seconds: f64) -> Result<Subject, EvaluateError> {
    let disk = Disk::create(harness, &FAST_DISK)?;
    let path = harness.path("recorded");
    let mut command = harness.luc(&["record", "--quiet", "--out"]);
    command.arg(&path).arg("--").arg(harness.luc_path());
    command.args(["bench", "metarates", "--threads", "64", "--file-size", "1k"]);
    command.args(["--seconds", &seconds.to_string(), "--dir"]).arg(&disk.mount);
    harness.execute(&mut command, &[0])?;
    let report = harness.json(&["explain", &path.display().to_string(), "--json"])?;
    let events = count(&report["trace"], "events")?;
    subject("recorded, 64 fsyncing threads", path, events)
}

fn explain(
    harness: &Harness,
    subject: &Subject,
    memory: Option<u64>,
) -> Result<Value, EvaluateError> {
    let mut command = std::process::Command::new(&harness.options.myself);
    command.arg("measured");
    if let Some(bytes) = memory {
        command.args(["--memory", &bytes.to_string()]);
    }
    command.arg("--").arg(harness.luc_path()).arg("explain");
    command.arg(&subject.path).arg("--json");
    let output = harness.execute(&mut command, &[0])?.stdout;
    parse(&output, &line(&command))
}

fn keep(harness: &Harness, subject: &Subject, repeat: usize, memory: Option<u64>, found: &Value) {
    harness.keep(json!({
        "cell": subject.name, "repeat": repeat, "events": subject.events, "trace_bytes": subject.bytes,
        "memory_limit_bytes": memory, "measured": found,
    }));
}
