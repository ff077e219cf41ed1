//! A recorded trace as a workload: a personality in Filebench's language that repeats the recorded threads' work.
//!
//! `read_trace` takes calls and syncs from the trace. `episodes` cuts each thread's calls by file. `distribution_table`
//! makes random variables of counts, sizes and pauses. `write_personality` writes the personality. A trace lacks
//! offsets, names, directories, and sizes of files that existed before it; docs/reference/advise.md explains the
//! consequences.

mod distribution_table;
mod episodes;
mod read_trace;
#[cfg(test)]
mod tests;
mod write_personality;

use std::path::{Path, PathBuf};

use luc_events::store::StoreError;

/// A personality made of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct DerivedPersonality {
    pub text: String,
    /// Calls of each kind in the trace that it replays.
    pub counts: DerivedCallCounts,
}

/// Calls of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DerivedCallCounts {
    pub creations: u64,
    pub removals: u64,
    pub writes: u64,
    pub reads: u64,
    /// fsync and the like.
    pub syncs: u64,
    /// Calls that a personality cannot have: renames, new directories, truncations, allocations.
    pub others: u64,
}

impl DerivedCallCounts {
    /// Calls that the personality makes.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.creations + self.removals + self.writes + self.reads + self.syncs
    }
}

/// Why no workload can be made of a trace.
#[derive(Debug, thiserror::Error)]
pub enum TracedError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "{path}: no thread in this trace made, wrote, synced or removed a file: record the program's own work, without \
         --no-calls and --summary",
        path = .0.display()
    )]
    NoCalls(PathBuf),
}

/// Derives the personality of the trace in `directory`.
///
/// # Errors
/// [`TracedError`]: it cannot be read, or has nothing to make a workload of.
pub fn derive(directory: &Path) -> Result<DerivedPersonality, TracedError> {
    let traced = read_trace::read(directory)?;
    let groups = episodes::groups(&traced);
    if groups.is_empty() {
        return Err(TracedError::NoCalls(directory.to_owned()));
    }
    Ok(write_personality::write(directory, &traced, &groups))
}
