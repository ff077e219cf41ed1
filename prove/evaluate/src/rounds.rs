//! Runs of `luc bench` alone, with the gate and recorded, with all settings in random order within each repeat.

use std::fs;
use std::path::Path;

use luc_stats::random;
use rand::seq::SliceRandom as _;
use serde_json::{Value, json};

use crate::disks::{Disk, DiskSpec};
use crate::error::EvaluateError;
use crate::harness::{Harness, elements, line, missing, of_disk, read_json};
use crate::progress::Progress;
use crate::steal::{self, with_stolen_share};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    /// Row in the table: `16 threads`.
    pub(super) cell: String,
    /// Column in the table: `stock`, `gate`.
    pub(super) setting: &'static str,
    /// Disk of the run. Jobs of equal specifications share one.
    pub(super) disk: DiskSpec,
    /// Words after `luc bench`, without the directory.
    pub(super) words: Vec<String>,
    pub(super) under: Under,
}

/// Command of luc that a job runs under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Under {
    Bare,
    /// Under `luc run --policy auto`.
    Gate,
    /// Under `luc record`. The trace is explained and removed.
    Recorder,
}

impl Under {
    /// Returns the words of `luc` before `--` and the command. They write to `file`.
    fn words(self, file: &Path) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Bare => return Vec::new(),
            Self::Gate => &["run", "--quiet", "--policy", "auto", "--json"],
            Self::Recorder => &["record", "--quiet", "--out"],
        };
        let words = words.iter().map(ToString::to_string);
        words.chain([file.display().to_string()]).collect()
    }
}

/// Runs all jobs `repeats` times, on fresh disks each time.
pub(super) fn run(harness: &Harness, jobs: &[Job], repeats: usize) -> Result<(), EvaluateError> {
    let jobs: Vec<&Job> = jobs.iter().filter(|job| harness.options.wants(&job.cell)).collect();
    if jobs.is_empty() {
        return Err(harness.options.no_cell());
    }
    harness.keep_processors_awake()?;
    let mut progress = Progress::new(harness.part, jobs.len() * repeats);
    for repeat in 0..repeats {
        let mut order = jobs.clone();
        order.shuffle(&mut random::stream(harness.options.seed, repeat as u64));
        let mut disks: Vec<(DiskSpec, Disk<'_>)> = Vec::new();
        for job in order {
            if !disks.iter().any(|(spec, _)| *spec == job.disk) {
                disks.push((job.disk, Disk::create(harness, &job.disk)?));
            }
            let disk = disks.iter().find(|(spec, _)| *spec == job.disk);
            let (_, disk) = disk.ok_or_else(|| missing("the disk"))?;
            steal::undisturbed(harness, |may_repeat| {
                run_job(harness, disk, job, repeat, may_repeat).map(|share| ((), share))
            })?;
            progress.step(&format!("{}, {}", job.cell, job.setting));
        }
    }
    Ok(())
}

/// Makes a run. Returns the share of the processors' time that the hypervisor took meanwhile.
fn run_job(
    harness: &Harness,
    disk: &Disk<'_>,
    job: &Job,
    repeat: usize,
    may_repeat: bool,
) -> Result<f64, EvaluateError> {
    // Output of `luc run` or `luc record`.
    let file = harness.path("written");
    let mut words = job.under.words(&file);
    if job.under != Under::Bare {
        words.extend(["--".to_owned(), harness.luc_path().display().to_string()]);
    }
    words.push("bench".to_owned());
    words.extend(job.words.iter().cloned());
    words.push("--dir".to_owned());
    words.extend([disk.mount.display().to_string(), "--json".to_owned()]);

    disk.settle()?;
    let mut command = harness.luc(&words);
    let before = disk.counts()?;
    let (bench, stolen_share) = with_stolen_share(|| harness.json_of(&mut command))?;
    let after = disk.counts()?;
    let (mut gate, mut explained) = (Value::Null, Value::Null);
    match job.under {
        Under::Bare => {}
        Under::Recorder => explained = explain(harness, disk, &file)?,
        Under::Gate => gate = of_disk(&read_json(&file)?, disk.device()).clone(),
    }
    let flushes = after.flushes - before.flushes;
    let commits = after.commits.zip(before.commits).map(|(after, before)| after - before);
    harness.keep(json!({
        "cell": job.cell, "setting": job.setting, "repeat": repeat, "disk": job.disk.words().join(" "),
        "command": line(&command), "stolen_share": stolen_share,
        "disturbed": steal::is_disturbed(may_repeat, stolen_share), "flushes": flushes, "commits": commits,
        "bench": bench, "gate": gate, "explained": reduce(&explained),
    }));
    Ok(stolen_share)
}

/// Explains a trace, removes it, and returns the part on the disk's file system.
pub(super) fn explain(
    harness: &Harness,
    disk: &Disk<'_>,
    trace: &Path,
) -> Result<Value, EvaluateError> {
    let report =
        harness.json(&["explain".to_owned(), trace.display().to_string(), "--json".to_owned()])?;
    fs::remove_dir_all(trace).map_err(EvaluateError::file("remove", trace))?;
    let found = elements(&report["file_systems"])
        .iter()
        .find(|found| found["mount_point"].as_str().map(Path::new) == Some(disk.mount.as_path()));
    found.cloned().ok_or_else(|| missing("the disk's file system in the explanation"))
}

/// Returns the part of an explanation that goes into the raw data: the figures of the pages, without distributions.
fn reduce(explained: &Value) -> Value {
    if explained.is_null() {
        return Value::Null;
    }
    let (syncs, commits) = (&explained["syncs"], &explained["commits"]);
    let latency = |latency: &Value| {
        let keys = ["count", "mean_ns", "p50_ns", "p99_ns", "max_ns"];
        let figures = keys.map(|key| (key.to_owned(), latency[key].clone()));
        Value::Object(figures.into_iter().collect())
    };
    json!({
        "syncs": {
            "latency": latency(&syncs["latency"]), "per_s": syncs["per_s"], "parts": syncs["parts"],
            "closed": syncs["closed"], "callers": syncs["callers"],
        },
        "commits": { "full": latency(&commits["full"]), "syncs_per_commit": commits["syncs_per_commit"] },
        "fsync_model": explained["fsync_model"], "batching": explained["batching"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_an_explanation() {
        let explained = json!({
            "syncs": { "latency": { "count": 3, "mean_ns": 5, "buckets": [[1, 2]] }, "closed": 3 },
            "batching": { "gain": 0.5 },
            "held": [1, 2, 3],
        });
        let kept = reduce(&explained);
        assert_eq!(kept["syncs"]["latency"]["mean_ns"], 5);
        assert_eq!(kept["syncs"]["latency"]["buckets"], Value::Null);
        assert_eq!(kept["batching"]["gain"], 0.5);
        assert_eq!(kept["held"], Value::Null);
    }
}
