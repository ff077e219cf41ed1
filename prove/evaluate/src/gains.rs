//! Part `gains`: how much callers gain that need a flush only, whose logs are allocated in advance or
//! grow, or who also delete; how much of what is possible; and what the policies of the papers give.

mod limit;
mod page;

use super::disks::{DiskSpec, EXT4};
use super::error::EvaluateError;
use super::harness::Harness;
use super::report::Page;
use super::rounds::{self, Job, Under};
pub(super) use page::{said, takers};

/// The disk whose writes take 100 µs.
const SLOWER_WRITES: DiskSpec = DiskSpec {
    model: &[
        "--model", "fixed", "--flush", "6ms", "--write", "100us", "--read", "20us",
    ],
    ..EXT4
};

/// What the callers of a cell do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// Overwrite 8 KiB of a log in place, fdatasync.
    Overwrite,
    /// Append 4 KiB to a log that was allocated in advance, fdatasync.
    Preallocated,
    /// Append 512 bytes to a log that was allocated in advance, fdatasync: one in eight converts.
    SmallPreallocated,
    /// Append 512 bytes to a log, fdatasync.
    Append,
    /// Create, write 1 KiB, fsync, close, unlink an older file.
    Replace,
}

impl Load {
    /// The words of `luc bench`, without clients and times.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Overwrite => &["overwrite", "--record-size", "8k", "--file-size", "4m"],
            Self::Preallocated => &["append", "--record-size", "4k", "--preallocate", "16m"],
            Self::SmallPreallocated => &["append", "--record-size", "512", "--preallocate", "4m"],
            Self::Append => &["append", "--record-size", "512"],
            Self::Replace => &["metarates", "--file-size", "1k", "--keep", "16"],
        }
    }

    /// The words of `luc bench commit` for one round of the same.
    fn commit(self) -> [&'static str; 4] {
        let (work, size) = match self {
            Self::Overwrite => ("overwrite", "8k"),
            // Of 16 records of 512 bytes nearly always one is the first of its block: a commit.
            Self::Preallocated | Self::SmallPreallocated => ("preallocated", "4k"),
            Self::Append => ("append", "512"),
            Self::Replace => ("replace", "1k"),
        };
        ["--work", work, "--file-size", size]
    }
}

/// What is to be reached.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Goal {
    /// As a multiple of stock.
    Ratio(f64),
    /// This share of the limit.
    Share(f64),
    /// Shown beside the others.
    Shown,
}

/// A row.
#[derive(Debug, Clone, Copy)]
struct Cell {
    name: &'static str,
    load: Load,
    callers: usize,
    processes: bool,
    disk: DiskSpec,
    goal: Goal,
}

#[rustfmt::skip]
const CELLS: [Cell; 11] = [
    cell("overwrite, 4 processes", Load::Overwrite, 4, true, Goal::Ratio(1.4)),
    cell("overwrite, 16 processes", Load::Overwrite, 16, true, Goal::Ratio(1.4)),
    cell("overwrite, 32 processes", Load::Overwrite, 32, true, Goal::Ratio(1.4)),
    cell("preallocated append, 4 processes", Load::Preallocated, 4, true, Goal::Ratio(1.5)),
    cell("preallocated append, 16 processes", Load::Preallocated, 16, true, Goal::Ratio(1.5)),
    cell("preallocated append of 512 bytes, 16 processes", Load::SmallPreallocated, 16, true, Goal::Shown),
    cell("append, 32 processes", Load::Append, 32, true, Goal::Ratio(1.6)),
    Cell { disk: SLOWER_WRITES, ..cell("append, 32 processes, writes of 100 µs", Load::Append, 32, true, Goal::Ratio(1.6)) },
    cell("create and delete, 16 threads", Load::Replace, 16, false, Goal::Ratio(1.8)),
    cell("create and delete, 32 threads", Load::Replace, 32, false, Goal::Ratio(1.65)),
    cell("create and delete, 64 threads", Load::Replace, 64, false, Goal::Share(0.9)),
];

const fn cell(name: &'static str, load: Load, callers: usize, processes: bool, goal: Goal) -> Cell {
    Cell {
        name,
        load,
        callers,
        processes,
        disk: EXT4,
        goal,
    }
}

/// Threads of metarates under the papers' policies, and what each is to reach over stock.
const POLICY_THREADS: [usize; 2] = [4, 16];
const POLICIES: [(&str, f64); 2] = [("delay", 1.6), ("pid", 1.3)];

fn policy_cell(threads: usize) -> String {
    format!("policies, {threads} threads")
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(5);
    let seconds = harness.options.seconds.unwrap_or(5.0);
    let mut jobs = Vec::new();
    for cell in CELLS {
        // The recorded run does not count as measured: being recorded costs something.
        let settings = [
            ("stock", Under::Bare),
            ("gate", Under::Gate),
            ("reported", Under::Reported),
        ];
        jobs.extend(settings.map(|(setting, under)| Job {
            cell: cell.name.to_owned(),
            setting,
            disk: cell.disk,
            words: load_words(&cell, seconds),
            under,
        }));
        jobs.push(Job {
            cell: cell.name.to_owned(),
            setting: "commit",
            disk: cell.disk,
            words: commit_words(&cell),
            under: Under::Bare,
        });
    }
    for threads in POLICY_THREADS {
        let mut add = |setting, under| {
            jobs.push(Job {
                cell: policy_cell(threads),
                setting,
                disk: EXT4,
                words: rounds::metarates(threads, false, seconds),
                under,
            });
        };
        add("stock", Under::Bare);
        for (policy, _) in POLICIES {
            add(policy, Under::Policy(policy));
        }
    }
    let runs = rounds::run(harness, &jobs, repeats)?;
    Ok(page::page(harness, &runs, repeats, seconds))
}

fn load_words(cell: &Cell, seconds: f64) -> Vec<String> {
    let mut words: Vec<String> = cell.load.words().iter().map(ToString::to_string).collect();
    words.extend(["--threads".to_owned(), cell.callers.to_string()]);
    if cell.processes {
        words.push("--processes".to_owned());
    }
    words.extend(["--seconds".to_owned(), seconds.to_string()]);
    words
}

fn commit_words(cell: &Cell) -> Vec<String> {
    let callers = cell.callers.to_string();
    let words = ["commit", "--rounds", "50", "--files", &callers];
    let words = words.into_iter().chain(cell.load.commit());
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_say_the_callers() {
        let mut names: Vec<&str> = CELLS.iter().map(|cell| cell.name).collect();
        for cell in CELLS {
            let kind = if cell.processes {
                "processes"
            } else {
                "threads"
            };
            let callers = format!("{} {kind}", cell.callers);
            assert!(cell.name.contains(&callers), "{}", cell.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CELLS.len());
    }

    #[test]
    fn a_cell_and_its_round_do_the_same() {
        let words = load_words(&CELLS[0], 5.0).join(" ");
        assert_eq!(
            words,
            "overwrite --record-size 8k --file-size 4m --threads 4 --processes --seconds 5"
        );
        let words = commit_words(&CELLS[0]).join(" ");
        assert_eq!(
            words,
            "commit --rounds 50 --files 4 --work overwrite --file-size 8k"
        );
    }
}
