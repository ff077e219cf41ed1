//! Errors of traces, with the next step.

use std::io;
use std::path::{Path, PathBuf};

/// A trace that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An error of the system.
    #[error("{path}: cannot {what}: {reason}; check the path, its permissions and the space left", path = .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The failed operation.
        what: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
    /// The directory to write to is in use.
    #[error("{path}: this directory already has a trace; remove it or name another one", path = .path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// Another recorder writes to the directory.
    #[error("{path}: another recorder is at work here; end it or name another directory", path = .path.display())]
    Recording {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has no trace.
    #[error("{path}: no trace is here ({reason}); name a directory that `luc record --out` wrote", path = .path.display())]
    NoTrace {
        /// The directory.
        path: PathBuf,
        /// The reason why it is no trace.
        reason: &'static str,
    },
    /// A file is not what its recorder wrote.
    #[error("{path}: damaged at offset {offset}: {reason}; copy the trace again or record anew", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset in bytes from its beginning.
        offset: u64,
        /// The fault that was found at the offset.
        reason: String,
    },
    /// A segment in the middle of a table is gone.
    #[error("{path}: segment {segment} of table {table} is missing; copy the trace again or record anew", path = .path.display())]
    Missing {
        /// The trace's directory.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// The number of the first segment that is missing.
        segment: u32,
    },
    /// A segment in the middle of a ring is gone.
    #[error("{path}: segment {number} of the ring is missing; copy the ring again, or name a segment of it", path = .path.display())]
    MissingInRing {
        /// The ring's directory.
        path: PathBuf,
        /// The number of the first segment that is missing.
        number: u32,
    },
    /// The trace was written by another version.
    #[error("{path}: the trace has schema version {found}, this program reads {oldest} to {newest}; use the version of luc that recorded it", path = .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: String,
        /// The oldest version that can be read.
        oldest: u32,
        /// The newest.
        newest: u32,
    },
    /// Rows could not be encoded.
    #[error("{path}: cannot encode rows of table {table}: {reason}; please report this", path = .path.display())]
    Encode {
        /// The trace's directory or the file.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// The Parquet library's reason.
        reason: parquet::errors::ParquetError,
    },
}

impl StoreError {
    /// A failed system call.
    pub(crate) fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::Io { path: path.to_path_buf(), what, reason }
    }

    /// A damaged file.
    pub(crate) fn damaged(path: &Path, offset: u64, reason: impl ToString) -> Self {
        Self::Damaged { path: path.to_path_buf(), offset, reason: reason.to_string() }
    }
}
