//! A program of many callers under `luc run`, beside the evaluation.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use luc_host::descendants::with_descendants;
use rustix::process::Signal;

use crate::disks::Disk;
use crate::error::EvaluateError;
use crate::harness::{Harness, count, line, missing, read_json, stop_if_interrupted};
use crate::kills::processes::{await_end, is_alive, send};
use crate::reports::of_disk;

/// Maximum wait for any event, before the evaluation is given up.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Maximum number of processes of a `luc run` that are looked at.
const MAX_PROCESSES: usize = 1000;
/// Kernel's names of the program, and of the process that keeps the listener of its calls.
const PROGRAM: &str = "notified";
const KEEPER: &str = "luc-keeper";
/// Duration from which a call counts as hung, ms.
pub(super) const HANG_MS: u64 = 1000;
/// Duration of a crowd that nobody ends, ms.
pub(super) const ENDLESS_MS: u64 = 600_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) calls: u64,
    /// Calls that took longer than [`HANG_MS`].
    pub(super) slow: u64,
    pub(super) failed: u64,
    pub(super) longest_ms: u64,
}

impl Counted {
    /// Parses the last line of a crowd: `calls N slow N failed N longest_ms N`.
    fn of(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let figure = |name: &str| -> Option<u64> {
            let at = words.iter().position(|word| *word == name)?;
            words.get(at + 1)?.parse().ok()
        };
        Some(Self {
            calls: figure("calls")?,
            slow: figure("slow")?,
            failed: figure("failed")?,
            longest_ms: figure("longest_ms")?,
        })
    }
}

/// A `luc run --reach notify` of a command with a crowd in it. Dropping it ends all of it.
pub(super) struct Crowd<'a> {
    disk: &'a Disk<'a>,
    luc: Child,
    /// Command line of `luc run`, as text for the results.
    pub(super) command: String,
    /// File whose existence ends all crowds.
    over: PathBuf,
    counted: PathBuf,
    report: PathBuf,
    /// Processes of the run that were waited for.
    seen: Vec<u32>,
}

impl<'a> Crowd<'a> {
    pub(super) fn start(
        harness: &Harness,
        disk: &'a Disk<'a>,
        command: &[&str],
    ) -> Result<Self, EvaluateError> {
        let (counted, report) = (harness.path("crowd.out"), harness.path("crowd.json"));
        let _ = fs::remove_file(&report);
        let over = disk.mount.join("over");
        let create = |path: &PathBuf| File::create(path).map_err(EvaluateError::file("make", path));
        let mut luc = harness.luc(&["run", "--quiet", "--policy", "delay:5ms"]);
        luc.args(["--reach", "notify", "--json"]).arg(&report);
        luc.arg("--").args(command).current_dir(&disk.mount);
        luc.stdin(Stdio::null())
            .stdout(create(&counted)?)
            .stderr(create(&harness.path("crowd.err"))?);
        let command = line(&luc);
        let luc = luc.spawn().map_err(EvaluateError::file("run", luc.get_program()))?;
        Ok(Self { disk, luc, command, over, counted, report, seen: Vec::new() })
    }

    pub(super) fn supervisor(&self) -> i32 {
        self.luc.id().cast_signed()
    }

    /// Waits until the program is executed.
    pub(super) fn until_executed(&mut self) -> Result<(), EvaluateError> {
        self.next(PROGRAM, None).map(drop)
    }

    /// Waits until there is a keeper other than `before`, and returns its process id.
    pub(super) fn next_keeper(&mut self, before: Option<i32>) -> Result<i32, EvaluateError> {
        self.next(KEEPER, before)
    }

    /// Waits until a call of the crowd has begun: there is a file with data.
    pub(super) fn until_called(&self) -> Result<(), EvaluateError> {
        wait_until("a call of the crowd", || {
            let files = fs::read_dir(&self.disk.mount).into_iter().flatten();
            files.flatten().any(|file| {
                let is_crowd = file.file_name().to_string_lossy().starts_with("crowd-");
                is_crowd && file.metadata().is_ok_and(|file| file.len() > 0)
            })
        })
    }

    /// Ends the crowd and returns its counts.
    pub(super) fn end(&mut self) -> Result<Counted, EvaluateError> {
        fs::write(&self.over, "").map_err(EvaluateError::file("write", &self.over))?;
        let counted = self.counted()?;
        fs::remove_file(&self.over).map_err(EvaluateError::file("remove", &self.over))?;
        Ok(counted)
    }

    /// Returns the crowd's counts, once it and `luc run` have ended.
    pub(super) fn counted(&mut self) -> Result<Counted, EvaluateError> {
        let mut counted = None;
        wait_until("the crowd's end", || {
            let text = fs::read_to_string(&self.counted).unwrap_or_default();
            counted = Counted::of(&text);
            counted.is_some()
        })?;
        let luc = &mut self.luc;
        wait_until("the end of luc run", || luc.try_wait().is_ok_and(|ended| ended.is_some()))?;
        counted.ok_or_else(|| missing("calls"))
    }

    /// Returns the calls that were held, as `luc run` reported at its end.
    pub(super) fn held(&self) -> Result<u64, EvaluateError> {
        let report = read_json(&self.report)?;
        let gate = &of_disk(&report, self.disk.device())["gate"];
        count(gate, "gated")
    }

    /// Returns how many of the awaited processes still exist after the run. None should.
    pub(super) fn left(&self) -> usize {
        await_end(self.seen.iter().map(|process| process.cast_signed()));
        let left = self.seen.iter();
        left.filter(|process| is_alive(process.cast_signed())).count()
    }

    /// Waits until the run has a process of this name other than `before`.
    fn next(&mut self, name: &str, before: Option<i32>) -> Result<i32, EvaluateError> {
        let mut found = None;
        wait_until(name, || {
            let all = with_descendants(self.luc.id(), MAX_PROCESSES);
            let is_next =
                |process: &u32| is_named(*process, name) && Some(process.cast_signed()) != before;
            found = all.into_iter().find(is_next);
            found.is_some()
        })?;
        let process = found.ok_or_else(|| missing(name))?;
        self.seen.push(process);
        Ok(process.cast_signed())
    }
}

impl Drop for Crowd<'_> {
    fn drop(&mut self) {
        let ended = self.luc.try_wait().is_ok_and(|ended| ended.is_some());
        let mut all = self.seen.clone();
        if !ended {
            all.extend(with_descendants(self.luc.id(), MAX_PROCESSES));
        }
        let ours = all
            .into_iter()
            .filter(|&process| [PROGRAM, KEEPER, "sh"].iter().any(|name| is_named(process, name)));
        ours.for_each(|process| send(process.cast_signed(), Signal::KILL));
        let _ = self.luc.kill();
        let _ = self.luc.wait();
        let _ = fs::remove_file(&self.over);
    }
}

/// Whether the kernel has a living process of this id and name.
fn is_named(process: u32, name: &str) -> bool {
    let found = fs::read_to_string(format!("/proc/{process}/comm"));
    found.is_ok_and(|found| found.trim_end() == name) && is_alive(process.cast_signed())
}

/// Waits until a condition is true.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), EvaluateError> {
    let begun = Instant::now();
    while !is_so() {
        stop_if_interrupted()?;
        if begun.elapsed() > WAIT_TIMEOUT {
            return Err(missing(what));
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_crowd() {
        let text = "calls 12 slow 0 failed 1 longest_ms 34\n";
        let one = Counted { calls: 12, slow: 0, failed: 1, longest_ms: 34 };
        assert_eq!(Counted::of(text), Some(one));
        assert_eq!(Counted::of("calls 12 slow 0 failed"), None);
    }
}
