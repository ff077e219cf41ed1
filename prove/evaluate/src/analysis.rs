//! Part `analysis`: the speed of `luc explain` on one processor, and whether its memory grows with the trace.

use std::path::PathBuf;

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target, number, spread};
use luc_stats::median;
use serde_json::{Value, json};

use crate::disks::{Disk, DiskSpec, EXT4};
use crate::error::EvaluateError;
use crate::harness::{Harness, count, directory_bytes, figure, line, parse};
use crate::progress::Progress;
use crate::synthetic;

const MIN_EVENTS_PER_S: f64 = 5e6;
/// Commits of the smallest generated trace, which has a million events.
const COMMITS: u64 = 2_250;
/// Maximum ratio of memory for 16 times the events.
const MAX_GROWTH: f64 = 1.25;
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

#[derive(Debug, Default)]
struct Figures {
    per_s: Vec<f64>,
    per_processor_s: Vec<f64>,
    peak_mib: Vec<f64>,
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
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
    let mut all: Vec<Figures> = subjects.iter().map(|_| Figures::default()).collect();
    for repeat in 0..repeats {
        for (subject, figures) in subjects.iter().zip(&mut all) {
            let found = explain(harness, subject, None)?;
            let events = subject.events as f64;
            figures.per_s.push(events / figure(&found, "seconds")?);
            let per_processor_s = events / figure(&found, "processor_s")?;
            figures.per_processor_s.push(per_processor_s);
            let peak_mib = figure(&found, "peak_bytes")? / f64::from(1 << 20);
            figures.peak_mib.push(peak_mib);
            keep(harness, subject, repeat, None, &found);
            progress.step(&format!("{}: {}/s", subject.name, number(per_processor_s)));
        }
    }
    let limited = subjects
        .iter()
        .filter(|subject| subject.bytes > MEMORY_LIMIT_BYTES)
        .max_by_key(|subject| subject.bytes);
    let limited =
        limited.map(|subject| (subject, explain(harness, subject, Some(MEMORY_LIMIT_BYTES))));
    if let Some((subject, Ok(found))) = &limited {
        keep(harness, subject, 0, Some(MEMORY_LIMIT_BYTES), found);
    }
    Ok(page(&subjects, &all, limited, repeats))
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

fn page(
    subjects: &[Subject],
    all: &[Figures],
    limited: Option<(&Subject, Result<Value, EvaluateError>)>,
    repeats: usize,
) -> Page {
    let mut table = Table::new(&[
        "trace",
        "events",
        "on disk, MiB",
        "million events per second of processor time",
        "million events/s",
        "peak memory, MiB",
    ]);
    let millions = |figures: &[f64]| {
        let figures: Vec<f64> = figures.iter().map(|figure| figure / 1e6).collect();
        spread(&figures)
    };
    let mib = |bytes: u64| number(bytes as f64 / f64::from(1 << 20));
    let mut targets = Vec::new();
    for (subject, figures) in subjects.iter().zip(all) {
        table.row(cells![
            subject.name,
            subject.events,
            mib(subject.bytes),
            millions(&figures.per_processor_s),
            millions(&figures.per_s),
            spread(&figures.peak_mib)
        ]);
        targets.push(Target::at_least(
            format!("{}: events per second on one processor", subject.name),
            median(&figures.per_processor_s),
            MIN_EVENTS_PER_S,
        ));
    }
    if let [small, _, large, ..] = all {
        let growth = median(&large.peak_mib)
            .zip(median(&small.peak_mib))
            .map(|(large, small)| large / small);
        targets.push(Target::below(
            "peak memory for 16 times the events, over that for one times,",
            growth,
            MAX_GROWTH,
        ));
    }
    if let Some((subject, outcome)) = limited {
        let figure = outcome.as_ref().map_or_else(
            |error| error.to_string(),
            |found| {
                let peak = found["peak_bytes"].as_u64().unwrap_or(0);
                format!("peak {} MiB", mib(peak))
            },
        );
        targets.push(Target::new(
            format!(
                "a trace of {} MiB is explained by a process that may have {} MiB",
                mib(subject.bytes),
                mib(MEMORY_LIMIT_BYTES)
            ),
            outcome.is_ok(),
            figure,
        ));
    }
    Page {
        title: "How fast traces are explained, and in how much memory".to_owned(),
        about: format!(
            "`luc explain --json` of whole traces, from its start to its end, on one processor, {repeats} times each, \
             the traces in turn. They are read from the page cache, as they would be after recording. The made-up \
             ones are 64 callers of fsync and 16 writers, most events waits. Peak memory is the largest resident set. \
             Figures are medians with, in parentheses, the 95 % interval from order statistics, or with fewer than 6 \
             runs their range."
        ),
        tables: vec![("Rates and memory:".to_owned(), table)],
        targets,
    }
}
