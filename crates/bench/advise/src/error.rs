//! Errors in a request for advice.

use std::path::PathBuf;

use luc_filebench::FilebenchError;
use luc_filebench::trace_to_workload::TracedError;

use luc_sweep::{BorrowError, SweepError};

#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    #[error(
        "--workload {given}: no such workload, file or trace{hint}; built in are metarates, varmail, oltp and \
         initial-write, and docs/reference/filebench.md has the personalities"
    )]
    UnknownWorkload {
        given: String,
        /// `; did you mean 'x'?`, or nothing.
        hint: String,
    },
    #[error("{option} {given}: not known{hint}")]
    Unknown {
        option: &'static str,
        given: String,
        /// The nearest name, or all.
        hint: String,
    },
    /// Options that do not go together, or a value that is none.
    #[error("{0}")]
    Option(String),
    #[error("nothing to try: {0}")]
    NoCandidate(String),
    #[error(
        "the workload's files take {needed} and this emulated disk, which is in memory, may have {there}: make them \
         fewer or smaller (--set nfiles=N), or measure in a directory (--on DIR)"
    )]
    Memory {
        needed: String,
        /// The memory of this machine.
        there: String,
    },
    #[error("--on {path}: not an existing directory; give one on the file system to be measured", path = .0.display())]
    Directory(PathBuf),
    #[error(
        "--device {path}: it is not empty ({found}): name another, or give --overwrite as well if that may go",
        path = .path.display()
    )]
    NotEmpty { path: PathBuf, found: String },
    #[error(transparent)]
    Filebench(#[from] FilebenchError),
    #[error(transparent)]
    Traced(#[from] TracedError),
    /// The sweep cannot be made or go on, in its words.
    #[error("{0}")]
    Sweep(String),
}

impl From<SweepError> for AdviseError {
    /// Drops the prefix about a plan, since the user has not written one.
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Borrow(BorrowError::NotEmpty { path, found }) => {
                Self::NotEmpty { path, found }
            }
            error => Self::Sweep(error.to_string().trim_start_matches("plan: ").to_owned()),
        }
    }
}
