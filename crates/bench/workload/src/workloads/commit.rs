//! Time of one journal commit (or one flush) that serves N files with their data. It is the denominator of N /
//! T_commit, the limit of what batching can give.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use luc_host::interrupt_flag;
use luc_stats::seeded_random;
use luc_stats::{MedianInterval, median, median_interval};
use serde::Serialize;

use super::raise_file_limit;
use crate::error::BenchError;
use crate::scratch_directory::ScratchDirectory;
use crate::workers::now_ns;

/// Rounds for which a file is kept before its unlinking.
const KEPT_ROUNDS: usize = 16;

/// Operation on each of the N files of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CommitWork {
    /// Creates and writes a file; the last one's fsync is the commit.
    Create,
    /// The same, and a file made 16 rounds before is unlinked.
    Replace,
    /// A log grows by a record; the last one's fdatasync is the commit.
    Append,
    /// A record goes into the next part of a log that was allocated in advance, whose extent is
    /// converted; the last one's fdatasync is the commit.
    Preallocated,
    /// A record is overwritten in place; the last one's fdatasync is a flush and no commit.
    Overwrite,
}

impl CommitWork {
    /// Describes the begin of a round, in words.
    #[must_use]
    pub fn begin(self) -> &'static str {
        match self {
            Self::Create => "create and write",
            Self::Replace => "unlink and create",
            Self::Append | Self::Preallocated | Self::Overwrite => "write",
        }
    }
}

/// Request for measuring the time of one commit for N files.
#[derive(Debug, Clone)]
pub struct CommitBench {
    /// A fresh subdirectory of this one is used and removed.
    pub directory: PathBuf,
    pub files: usize,
    pub work: CommitWork,
    /// Rounds measured; a tenth more, at least one, come first and are left out.
    pub rounds: usize,
    pub file_size_bytes: u64,
    pub seed: u64,
}

/// A median over the rounds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RoundMedian {
    pub median_us: f64,
    /// 95 % interval of the median, µs; absent for fewer than 6 rounds.
    pub low_us: Option<f64>,
    pub high_us: Option<f64>,
}

/// Report of the workload `commit`.
#[derive(Debug, Clone, Serialize)]
pub struct CommitBenchReport {
    pub workload: &'static str,
    pub directory: PathBuf,
    pub seed: u64,
    pub files: usize,
    pub work: CommitWork,
    pub file_size_bytes: u64,
    /// Rounds left out of the figures.
    pub warmup_rounds: usize,
    pub rounds: usize,
    pub interrupted: bool,
    /// A whole round: T_commit(N).
    pub total: RoundMedian,
    /// Unlinking, creating and writing the files, depending on the work.
    pub create: RoundMedian,
    /// Starting writeback on all (`sync_file_range`).
    pub start_writeback: RoundMedian,
    /// Waiting for the data.
    pub wait_writeback: RoundMedian,
    /// Synchronization of the last file: the commit, or the flush, proper.
    pub fsync: RoundMedian,
    /// N / T_commit: files per second if every commit served N files and nothing overlapped.
    pub files_per_second: f64,
}

/// Times of one round, ns.
struct CommitTimes {
    create: u64,
    start: u64,
    wait: u64,
    fsync: u64,
}

/// Measures the rounds. `tick` gets the number of finished rounds.
///
/// # Errors
/// [`BenchError`]: a number is zero, or the directory cannot be used or is full.
pub fn run(
    plan: &CommitBench,
    tick: &mut dyn FnMut(usize),
) -> Result<CommitBenchReport, BenchError> {
    for (option, value, most) in
        [("--files", plan.files, 100_000), ("--rounds", plan.rounds, 1_000_000)]
    {
        if !(1..=most).contains(&value) {
            return Err(BenchError::Input {
                option: format!("{option} {value}"),
                reason: "out of range",
                advice: "use 1 to 100000 files and 1 to 1000000 rounds",
            });
        }
    }
    raise_file_limit(plan.files)?;
    let scratch = ScratchDirectory::create(&plan.directory)?;
    let failed = |(what, error)| BenchError::operation(&plan.directory, what, error);
    let data = seeded_random::bytes(
        &mut seeded_random::stream(plan.seed, 0),
        plan.file_size_bytes as usize,
    );
    let warmup_rounds = (plan.rounds / 10).max(1);
    let all_rounds = warmup_rounds + plan.rounds;
    let logs = logs(scratch.path(), plan, &data, all_rounds).map_err(failed)?;
    let mut rounds = Vec::with_capacity(plan.rounds);
    for number in 0..all_rounds {
        if interrupt_flag::interrupted() {
            break;
        }
        let round = one_round(scratch.path(), plan, number, &logs, &data).map_err(failed)?;
        if number >= warmup_rounds {
            rounds.push(round);
        }
        tick(number + 1);
    }
    scratch.remove()?;
    report(plan, warmup_rounds, &rounds).ok_or(BenchError::Interrupted)
}

/// Failed operation, with its error.
type Failed = (&'static str, io::Error);

/// Makes the logs before the first round, if the work has logs.
fn logs(
    directory: &Path,
    plan: &CommitBench,
    data: &[u8],
    rounds: usize,
) -> Result<Vec<File>, Failed> {
    let size_bytes = rounds as u64 * data.len() as u64;
    let make = |number: usize| {
        let mut file = File::create(directory.join(format!("log{number:06}")))?;
        match plan.work {
            CommitWork::Preallocated if size_bytes > 0 => {
                let mode = rustix::fs::FallocateFlags::empty();
                rustix::fs::fallocate(&file, mode, 0, size_bytes)?;
            }
            CommitWork::Overwrite => file.write_all(data)?,
            _ => {}
        }
        file.sync_all()?;
        Ok(file)
    };
    let logs = match plan.work {
        CommitWork::Create | CommitWork::Replace => 0,
        CommitWork::Append | CommitWork::Preallocated | CommitWork::Overwrite => plan.files,
    };
    (0..logs).map(|number| make(number).map_err(|error| ("making a log", error))).collect()
}

/// Creates and writes the files of a round. If the work asks for it, also unlinks those of an old round.
fn new_files(
    directory: &Path,
    plan: &CommitBench,
    round: usize,
    data: &[u8],
) -> Result<Vec<File>, Failed> {
    let path = |round: usize, file: usize| directory.join(format!("r{round:06}.{file:06}"));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let old = match plan.work {
        CommitWork::Replace => round.checked_sub(KEPT_ROUNDS),
        _ => None,
    };
    let one = |number: usize| {
        if let Some(old) = old {
            fs::remove_file(path(old, number)).map_err(|error| ("unlink", error))?;
        }
        let opened = options.open(path(round, number));
        let mut file = opened.map_err(|error| ("open", error))?;
        file.write_all(data).map_err(|error| ("write", error))?;
        Ok(file)
    };
    (0..plan.files).map(one).collect()
}

fn one_round(
    directory: &Path,
    plan: &CommitBench,
    round: usize,
    logs: &[File],
    data: &[u8],
) -> Result<CommitTimes, Failed> {
    let begin = now_ns();
    let new = match plan.work {
        CommitWork::Create | CommitWork::Replace => new_files(directory, plan, round, data)?,
        CommitWork::Append | CommitWork::Preallocated | CommitWork::Overwrite => {
            let at = match plan.work {
                CommitWork::Overwrite => 0,
                _ => round as u64 * data.len() as u64,
            };
            for log in logs {
                log.write_all_at(data, at).map_err(|error| ("write", error))?;
            }
            Vec::new()
        }
    };
    let handles = if new.is_empty() { logs } else { &new };
    let created = now_ns();
    for file in handles {
        sync_range(file, libc::SYNC_FILE_RANGE_WRITE)
            .map_err(|error| ("sync_file_range", error))?;
    }
    let started = now_ns();
    let whole = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    for file in handles {
        sync_range(file, whole).map_err(|error| ("sync_file_range", error))?;
    }
    let waited = now_ns();
    if let Some(last) = handles.last() {
        let synced = match plan.work {
            CommitWork::Create | CommitWork::Replace => last.sync_all(),
            CommitWork::Append | CommitWork::Preallocated | CommitWork::Overwrite => {
                last.sync_data()
            }
        };
        synced.map_err(|error| ("fsync", error))?;
    }
    let synced = now_ns();
    Ok(CommitTimes {
        create: created - begin,
        start: started - created,
        wait: waited - started,
        fsync: synced - waited,
    })
}

/// Calls `sync_file_range` over the whole file.
fn sync_range(file: &File, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: a system call on a descriptor that `file` keeps open; it takes no pointers.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn report(
    plan: &CommitBench,
    warmup_rounds: usize,
    rounds: &[CommitTimes],
) -> Option<CommitBenchReport> {
    let part = |time_ns: fn(&CommitTimes) -> u64| {
        let times: Vec<f64> = rounds.iter().map(|round| time_ns(round) as f64 / 1e3).collect();
        let interval = median_interval(&times);
        Some(RoundMedian {
            median_us: median(&times)?,
            low_us: interval.map(|MedianInterval { low, .. }| low),
            high_us: interval.map(|MedianInterval { high, .. }| high),
        })
    };
    let total = part(|round| round.create + round.start + round.wait + round.fsync)?;
    Some(CommitBenchReport {
        workload: "commit",
        directory: plan.directory.clone(),
        seed: plan.seed,
        files: plan.files,
        work: plan.work,
        file_size_bytes: plan.file_size_bytes,
        warmup_rounds,
        rounds: rounds.len(),
        interrupted: rounds.len() < plan.rounds,
        total,
        create: part(|round| round.create)?,
        start_writeback: part(|round| round.start)?,
        wait_writeback: part(|round| round.wait)?,
        fsync: part(|round| round.fsync)?,
        files_per_second: plan.files as f64 / total.median_us * 1e6,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_round() {
        let plan = CommitBench {
            directory: PathBuf::from("/x"),
            files: 10,
            work: CommitWork::Create,
            rounds: 3,
            file_size_bytes: 0,
            seed: 1,
        };
        let rounds: Vec<CommitTimes> = [1, 3, 2]
            .map(|n| CommitTimes { create: n * 1000, start: 1000, wait: 2000, fsync: 4000 })
            .into();
        let report = report(&plan, 1, &rounds).expect("figures");
        assert!((report.total.median_us - 9.0).abs() < 1e-9);
        assert!((report.create.median_us - 2.0).abs() < 1e-9);
        assert!((report.files_per_second - 10.0 / 9e-6).abs() < 1e-3);
        assert_eq!(report.total.low_us, None, "three rounds give no 95 % interval");
        assert!(!report.interrupted);
    }

    #[test]
    fn zero_files_are_refused() {
        let plan = CommitBench {
            directory: std::env::temp_dir(),
            files: 0,
            work: CommitWork::Create,
            rounds: 1,
            file_size_bytes: 0,
            seed: 1,
        };
        assert!(run(&plan, &mut |_| {}).is_err_and(|error| error.to_string().contains("--files")));
    }

    #[test]
    fn every_work_runs_and_nothing_is_left() {
        for work in [
            CommitWork::Create,
            CommitWork::Replace,
            CommitWork::Append,
            CommitWork::Preallocated,
            CommitWork::Overwrite,
        ] {
            let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
            let plan = CommitBench {
                directory: parent.path().to_path_buf(),
                files: 3,
                work,
                rounds: KEPT_ROUNDS + 2,
                file_size_bytes: 512,
                seed: 1,
            };
            let report = run(&plan, &mut |_| {}).expect("figures");
            assert!(report.files_per_second > 0.0, "{work:?}");
            assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 0);
        }
    }
}
