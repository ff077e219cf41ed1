//! A recorded trace as a workload: a personality in Filebench's language that does what the recorded threads did.
//!
//! `read` takes calls and syncs from the trace, `episodes` cuts each thread's into what it did to one file at a time,
//! `table` makes random variables of counts, sizes and pauses, `write` writes the personality. What a trace does not
//! have is in docs/reference/advise.md: offsets, names, directories, sizes of files that were there before.

mod episodes;
mod read;
mod table;
#[cfg(test)]
mod tests;
mod write;

use std::path::{Path, PathBuf};

use luc_events::store::StoreError;

/// A personality made of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// It, in Filebench's language.
    pub text: String,
    /// How many calls of each kind it is made of.
    pub counts: Counts,
}

/// Calls of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Files made.
    pub creations: u64,
    /// Files removed.
    pub removals: u64,
    /// Writes.
    pub writes: u64,
    /// Reads.
    pub reads: u64,
    /// fsync and the like.
    pub syncs: u64,
    /// Calls that a personality cannot have: renames, new directories, truncations, allocations.
    pub others: u64,
}

impl Counts {
    /// Those that are kept.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.creations + self.removals + self.writes + self.reads + self.syncs
    }
}

/// A trace of which no workload can be made.
#[derive(Debug, thiserror::Error)]
pub enum TracedError {
    /// It cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It has no calls.
    #[error(
        "{path}: no thread in this trace made, wrote, synced or removed a file: record the program's own work, without \
         --no-calls and --summary",
        path = .0.display()
    )]
    NoCalls(PathBuf),
}

/// The personality of the trace in `directory`.
///
/// # Errors
/// [`TracedError`]: it cannot be read, or has nothing of which a workload can be made.
pub fn derive(directory: &Path) -> Result<Derived, TracedError> {
    let traced = read::read(directory)?;
    let groups = episodes::groups(&traced);
    if groups.is_empty() {
        return Err(TracedError::NoCalls(directory.to_owned()));
    }
    Ok(write::write(directory, &traced, &groups))
}
