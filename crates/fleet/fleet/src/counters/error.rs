//! Errors, each with the reason and the next step.

use std::path::PathBuf;

use luc_counters::FormulaError;
use luc_counters::perf_stat_file::ReplayError;

/// Reason why there are no figures, in one line.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    #[error("{path}: {reason}; give a trace, or a file that `perf stat -I 100 -x, -o FILE` wrote", path = .path.display())]
    File { path: PathBuf, reason: std::io::Error },
    #[error("{path}: {reason}", path = .path.display())]
    NotPerf { path: PathBuf, reason: ReplayError },
    #[error("{path}: {why}", path = .path.display())]
    NoCounters {
        path: PathBuf,
        /// The reason why there are no counts, and the next step.
        why: String,
    },
    #[error("{path}: perf stat does not tell processes apart; leave out --process, or give a trace", path = .path.display())]
    NotOfProcesses { path: PathBuf },
    #[error("the cycles of {name} cannot be split; the processors are {names}")]
    NoSuchProcessor { name: String, names: String },
    #[error(transparent)]
    Formula(#[from] FormulaError),
}
