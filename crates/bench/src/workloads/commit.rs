//! The time of one journal commit that serves N new files with their data: the denominator of the
//! limit N / T_commit of what batching can give.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::raise_file_limit;
use crate::error::BenchError;
use crate::scratch::Scratch;
use crate::stats::{MedianInterval, median, median_interval};
use crate::workers::now_ns;
use crate::{interrupt, random};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Commit {
    /// A fresh subdirectory of this one is used and removed.
    pub directory: PathBuf,
    /// Files per round.
    pub files: usize,
    /// Rounds measured; a tenth more, at least one, come first and are left out.
    pub rounds: usize,
    /// Bytes written to each file.
    pub file_size_bytes: u64,
    /// Seed of the contents.
    pub seed: u64,
}

/// A median over the rounds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Part {
    /// Median, µs.
    pub median_us: f64,
    /// 95 % interval of the median, µs; absent for fewer than 6 rounds.
    pub low_us: Option<f64>,
    /// Upper bound, µs.
    pub high_us: Option<f64>,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `commit`.
    pub workload: &'static str,
    /// The directory given.
    pub directory: PathBuf,
    /// Seed.
    pub seed: u64,
    /// Files per round.
    pub files: usize,
    /// Bytes of each file.
    pub file_size_bytes: u64,
    /// Rounds left out of the figures.
    pub warmup_rounds: usize,
    /// Rounds measured.
    pub rounds: usize,
    /// Whether a signal ended the run early.
    pub interrupted: bool,
    /// A whole round: T_commit(N).
    pub total: Part,
    /// Creating and writing the files.
    pub create: Part,
    /// Starting writeback on all (`sync_file_range`).
    pub start_writeback: Part,
    /// Waiting for the data.
    pub wait_writeback: Part,
    /// One fsync of the last file: the commit proper.
    pub fsync: Part,
    /// N / T_commit: files per second if every commit served N files and nothing overlapped.
    pub files_per_second: f64,
}

/// Times of one round, ns.
struct Round {
    create: u64,
    start: u64,
    wait: u64,
    fsync: u64,
}

/// Measures. `tick` is told the rounds done.
///
/// # Errors
/// [`BenchError`]: a number is zero, or the directory cannot be used or is full.
pub fn run(plan: &Commit, tick: &mut dyn FnMut(usize)) -> Result<Report, BenchError> {
    for (option, value, most) in [
        ("--files", plan.files, 100_000),
        ("--rounds", plan.rounds, 1_000_000),
    ] {
        if !(1..=most).contains(&value) {
            return Err(BenchError::Input {
                option: format!("{option} {value}"),
                reason: "out of range",
                advice: "use 1 to 100000 files and 1 to 1000000 rounds",
            });
        }
    }
    raise_file_limit(plan.files)?;
    let scratch = Scratch::create(&plan.directory)?;
    let failed = |(what, error)| BenchError::operation(&plan.directory, what, error);
    let data = random::bytes(
        &mut random::stream(plan.seed, 0),
        plan.file_size_bytes as usize,
    );
    let warmup_rounds = (plan.rounds / 10).max(1);
    let mut rounds = Vec::with_capacity(plan.rounds);
    for number in 0..warmup_rounds + plan.rounds {
        if interrupt::interrupted() {
            break;
        }
        let round = one_round(scratch.path(), number, plan.files, &data).map_err(failed)?;
        if number >= warmup_rounds {
            rounds.push(round);
        }
        tick(number + 1);
    }
    scratch.remove()?;
    report(plan, warmup_rounds, &rounds).ok_or(BenchError::Interrupted)
}

fn one_round(
    directory: &Path,
    round: usize,
    files: usize,
    data: &[u8],
) -> Result<Round, (&'static str, io::Error)> {
    let paths: Vec<PathBuf> = (0..files)
        .map(|file| directory.join(format!("r{round:06}.{file:06}")))
        .collect();
    let mut handles = Vec::with_capacity(files);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let begin = now_ns();
    for path in &paths {
        let mut file = options.open(path).map_err(|error| ("open", error))?;
        file.write_all(data).map_err(|error| ("write", error))?;
        handles.push(file);
    }
    let created = now_ns();
    for file in &handles {
        sync_range(file, libc::SYNC_FILE_RANGE_WRITE)
            .map_err(|error| ("sync_file_range", error))?;
    }
    let started = now_ns();
    let whole = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    for file in &handles {
        sync_range(file, whole).map_err(|error| ("sync_file_range", error))?;
    }
    let waited = now_ns();
    if let Some(last) = handles.last() {
        last.sync_all().map_err(|error| ("fsync", error))?;
    }
    let synced = now_ns();
    Ok(Round {
        create: created - begin,
        start: started - created,
        wait: waited - started,
        fsync: synced - waited,
    })
}

/// `sync_file_range` over the whole file.
fn sync_range(file: &File, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: a system call on a descriptor that `file` keeps open; it takes no pointers.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn report(plan: &Commit, warmup_rounds: usize, rounds: &[Round]) -> Option<Report> {
    let part = |time_ns: fn(&Round) -> u64| {
        let times: Vec<f64> = rounds
            .iter()
            .map(|round| time_ns(round) as f64 / 1e3)
            .collect();
        let interval = median_interval(&times);
        Some(Part {
            median_us: median(&times)?,
            low_us: interval.map(|MedianInterval { low, .. }| low),
            high_us: interval.map(|MedianInterval { high, .. }| high),
        })
    };
    let total = part(|round| round.create + round.start + round.wait + round.fsync)?;
    Some(Report {
        workload: "commit",
        directory: plan.directory.clone(),
        seed: plan.seed,
        files: plan.files,
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
        let plan = Commit {
            directory: PathBuf::from("/x"),
            files: 10,
            rounds: 3,
            file_size_bytes: 0,
            seed: 1,
        };
        let rounds: Vec<Round> = [1, 3, 2]
            .map(|n| Round {
                create: n * 1000,
                start: 1000,
                wait: 2000,
                fsync: 4000,
            })
            .into();
        let report = report(&plan, 1, &rounds).expect("figures");
        assert!((report.total.median_us - 9.0).abs() < 1e-9);
        assert!((report.create.median_us - 2.0).abs() < 1e-9);
        assert!((report.files_per_second - 10.0 / 9e-6).abs() < 1e-3);
        assert_eq!(
            report.total.low_us, None,
            "three rounds give no 95 % interval"
        );
        assert!(!report.interrupted);
    }

    #[test]
    fn zero_files_are_refused() {
        let plan = Commit {
            directory: std::env::temp_dir(),
            files: 0,
            rounds: 1,
            file_size_bytes: 0,
            seed: 1,
        };
        assert!(run(&plan, &mut |_| {}).is_err_and(|error| error.to_string().contains("--files")));
    }
}
