//! Planted troubles, and the findings that they must cause.
//!
//! The troubles are several times larger than what the machine adds, so a busy machine does not decide the outcome.

use std::fmt;
use std::path::Path;

/// Costs of a disk in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Model {
    /// Every request occupies the disk for its time.
    Fixed { read: f64, write: f64, flush: f64 },
    /// Reads take long, but others are served meanwhile.
    SlowReads { read: f64, flush: f64 },
}

/// A disk with ext4 on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drive {
    pub(super) model: Model,
    pub(super) mkfs: &'static str,
    /// Bytes that may be dirty on it before writers are slowed down; `None`: the system's default.
    pub(super) dirty_limit_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Role {
    /// Name of its threads, `comm`.
    pub(super) name: &'static str,
    pub(super) disk: usize,
    /// Words of `luc-evaluate plant`.
    pub(super) words: &'static str,
}

/// Party that a finding must name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Named {
    Any,
    Role(&'static str),
    /// The party that is not the victim.
    Other,
}

/// A figure of the split that the disk determines, for the quickest tenth of fsyncs or commits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Determined {
    pub(super) what: Figure,
    /// Its duration in flushes of the disk.
    pub(super) flushes: f64,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Figure {
    /// An fsync's wait for its own commit, full or fast.
    OwnCommit,
    Commit,
    FastCommit,
}

/// A finding that must be first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// Disk of the finding; `None`: first of all findings.
    pub(super) disk: Option<usize>,
    pub(super) finding: &'static str,
    pub(super) victim: Named,
    pub(super) culprit: Named,
    pub(super) determined: Option<Determined>,
}

#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) disks: Vec<Drive>,
    pub(super) roles: Vec<Role>,
    pub(super) expected: Vec<Expected>,
}

impl Drive {
    /// Returns the words of `luc disk create`. `model` is the file that [`Drive::toml`] was written to.
    pub(super) fn words(&self, model: &Path) -> Vec<String> {
        let us = |ms: f64| format!("{}us", (ms * 1e3).round());
        let mut words = vec!["--model".to_owned()];
        match self.model {
            Model::Fixed { read, write, flush } => {
                words.push("fixed".to_owned());
                for (option, ms) in [("--read", read), ("--write", write), ("--flush", flush)] {
                    words.extend([option.to_owned(), us(ms)]);
                }
            }
            Model::SlowReads { .. } => words.push(model.display().to_string()),
        }
        words.extend(["--size", "4G", "--mkfs", "ext4"].map(str::to_owned));
        if !self.mkfs.is_empty() {
            words.extend(["--mkfs-options".to_owned(), self.mkfs.to_owned()]);
        }
        words
    }

    /// Returns the file that describes the model, if it needs one.
    pub(super) fn toml(&self) -> Option<String> {
        let ns = |ms: f64| (ms * 1e6).round();
        match self.model {
            Model::Fixed { .. } => None,
            Model::SlowReads { read, flush } => Some(format!(
                "model = \"ssd\"\nread_ns = {}\nwrite_ns = 20000\nflush_ns = {}\n",
                ns(read),
                ns(flush)
            )),
        }
    }

    /// Duration of a flush in milliseconds.
    pub(super) fn flush_ms(&self) -> f64 {
        match self.model {
            Model::Fixed { flush, .. } | Model::SlowReads { flush, .. } => flush,
        }
    }
}

impl fmt::Display for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.model {
            Model::Fixed { read, write, flush } => {
                write!(f, "flush {flush} ms, write {write} ms, read {read} ms")?;
            }
            Model::SlowReads { read, flush } => {
                write!(f, "flush {flush} ms, write 0.02 ms, read {read} ms")?;
            }
        }
        if !self.mkfs.is_empty() {
            write!(f, ", mkfs `{}`", self.mkfs)?;
        }
        match self.dirty_limit_bytes {
            Some(bytes) => write!(f, ", {} MiB may be dirty", bytes >> 20),
            None => Ok(()),
        }
    }
}

impl Expected {
    fn first(finding: &'static str, victim: Named, culprit: Named) -> Self {
        Self { disk: None, finding, victim, culprit, determined: None }
    }

    fn on(self, disk: usize) -> Self {
        Self { disk: Some(disk), ..self }
    }

    fn with(self, what: Figure, flushes: f64) -> Self {
        Self { determined: Some(Determined { what, flushes }), ..self }
    }
}

/// Number of flushes in a full commit, and of the last block of a fast one: before the record that makes it valid, and
/// after it.
const FLUSHES_PER_COMMIT: f64 = 2.0;

/// Returns all cases, on disks that are slower by this factor.
pub(super) fn all(slowdown: f64) -> Vec<Case> {
    let drive = |write: f64, flush: f64, mkfs| Drive {
        model: Model::Fixed { read: 0.02, write: write * slowdown, flush: flush * slowdown },
        mkfs,
        dirty_limit_bytes: None,
    };
    let flushing = || drive(0.02, 20.0, "");
    let role = |name, words| Role { name, disk: 0, words };
    let case = |name, disk, roles: &[Role], expected| Case {
        name,
        disks: vec![disk],
        roles: roles.to_vec(),
        expected: vec![expected],
    };
    let slow_reads =
        Drive { model: Model::SlowReads { read: 60.0 * slowdown, flush: 2.0 }, ..flushing() };
    let little_dirty = Drive { dirty_limit_bytes: Some(4 << 20), ..drive(2.0, 2.0, "") };
    vec![
        case(
            "a lone fsyncer",
            flushing(),
            &[role("lone", "log")],
            Expected::first("device_bound", Named::Role("lone"), Named::Any)
                .with(Figure::OwnCommit, FLUSHES_PER_COMMIT),
        ),
        case(
            "two alternating groups",
            flushing(),
            &[role("group", "log --threads 8")],
            Expected::first("synchronization_bound", Named::Role("group"), Named::Role("group"))
                .with(Figure::OwnCommit, FLUSHES_PER_COMMIT),
        ),
        case(
            "two alternating processes",
            flushing(),
            &[role("one", "log"), role("other", "log")],
            Expected::first("synchronization_bound", Named::Any, Named::Other)
                .with(Figure::OwnCommit, FLUSHES_PER_COMMIT),
        ),
        case(
            "100 MB dirtied beside a small fsyncer",
            drive(0.5, 6.0, ""),
            &[role("small", "log"), role("dumper", "dump --think-us 100000")],
            Expected::first("someone_elses_data", Named::Role("small"), Named::Role("dumper")),
        ),
        case(
            "a log writer and overwriters",
            drive(4.0, 2.0, ""),
            &[role("log", "log"), role("pages", "overwrite --threads 8 --think-us 1000")],
            Expected::first("write_delay_bound", Named::Role("pages"), Named::Role("log")),
        ),
        case(
            "a directory lock convoy",
            flushing(),
            &[role("spool", "spool --threads 8")],
            Expected::first("directory_lock", Named::Role("spool"), Named::Role("spool"))
                .with(Figure::Commit, FLUSHES_PER_COMMIT),
        ),
        case(
            "a small journal that another fills",
            drive(0.5, 2.0, "-J size=4"),
            &[
                role("small", "overwrite --threads 4 --think-us 1000"),
                role("filler", "directories --threads 4"),
            ],
            Expected::first("checkpoint_pressure", Named::Role("small"), Named::Role("filler")),
        ),
        case(
            "a small journal",
            drive(0.5, 2.0, "-J size=4"),
            &[role("filler", "directories --threads 8")],
            Expected::first("checkpoint_pressure", Named::Role("filler"), Named::Role("filler")),
        ),
        case(
            "fast_commit",
            drive(0.02, 20.0, "-O fast_commit"),
            &[role("lone", "log")],
            Expected::first("fast_commit_bound", Named::Role("lone"), Named::Role("lone"))
                .with(Figure::OwnCommit, FLUSHES_PER_COMMIT),
        ),
        // Here a caller's own wait is anything up to a commit: who comes while another's fast commit is under way waits
        // for the rest of that one and is done (`jbd2_fc_begin_commit` returns -EALREADY, `ext4_fc_commit` then 0).
        case(
            "fast_commit, 8 threads",
            drive(0.02, 20.0, "-O fast_commit"),
            &[role("many", "log --threads 8")],
            Expected::first("fast_commit_bound", Named::Role("many"), Named::Role("many"))
                .with(Figure::FastCommit, FLUSHES_PER_COMMIT),
        ),
        Case {
            name: "two file systems",
            disks: vec![flushing(), flushing()],
            roles: vec![
                role("lone", "log"),
                Role { name: "group", disk: 1, words: "log --threads 8" },
            ],
            expected: vec![
                Expected::first("device_bound", Named::Role("lone"), Named::Any)
                    .on(0)
                    .with(Figure::OwnCommit, FLUSHES_PER_COMMIT),
                Expected::first(
                    "synchronization_bound",
                    Named::Role("group"),
                    Named::Role("group"),
                )
                .on(1)
                .with(Figure::OwnCommit, FLUSHES_PER_COMMIT),
            ],
        },
        case(
            "a transaction locked up by a long handle",
            slow_reads,
            &[
                role("syncer", "log --think-us 20000"),
                role("pages", "overwrite --threads 8 --think-us 2000"),
                role("cutter", "cut"),
            ],
            Expected::first("lock_up", Named::Role("pages"), Named::Role("cutter")),
        ),
        case(
            "a writer without end beside a small one",
            little_dirty,
            &[role("stream", "stream --threads 2"), role("small", "overwrite --think-us 100")],
            Expected::first("dirty_throttling", Named::Role("small"), Named::Role("stream")),
        ),
        case(
            "a program that computes",
            flushing(),
            &[role("computer", "compute --threads 2")],
            Expected::first("not_storage", Named::Any, Named::Any),
        ),
    ]
}
