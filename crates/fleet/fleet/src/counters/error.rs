//! What can go wrong, each with the reason and the next step.

use std::path::PathBuf;

use luc_counters::FormulaError;
use luc_counters::replay::ReplayError;

/// Why there are no figures. The text is one line.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// A file of counters cannot be read.
    #[error("{path}: {reason}; give a trace, or a file that `perf stat -I 100 -x, -o FILE` wrote", path = .path.display())]
    File { path: PathBuf, reason: std::io::Error },
    /// A file of counters is not perf's.
    #[error("{path}: {reason}", path = .path.display())]
    NotPerf { path: PathBuf, reason: ReplayError },
    /// A trace has nothing that was counted.
    #[error("{path}: {why}", path = .path.display())]
    NoCounters {
        path: PathBuf,
        /// What is missing, and what to do.
        why: String,
    },
    /// A file of counters does not tell processes apart.
    #[error("{path}: perf stat does not tell processes apart; leave out --process, or give a trace", path = .path.display())]
    NotOfProcesses { path: PathBuf },
    /// No table of formulas is of this processor.
    #[error("the cycles of {name} cannot be split; the processors are {names}")]
    NoSuchProcessor {
        /// What was asked for.
        name: String,
        /// Those that there are.
        names: String,
    },
    /// A formula of ours cannot be read.
    #[error(transparent)]
    Formula(#[from] FormulaError),
}
