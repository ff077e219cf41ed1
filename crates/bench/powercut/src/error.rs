//! Why a trial could not be made.

use std::io;
use std::path::PathBuf;

use luc_units::FileOperationError;

/// A trial that could not start or finish. The message is one line that ends with a remedy.
#[derive(Debug, thiserror::Error)]
pub enum PowercutError {
    #[error("{0} 0: nothing to do; use 1 or more")]
    Zero(&'static str),
    #[error("--clients {0}: not a number of clients; use 1 to 4096")]
    Clients(usize),
    #[error(transparent)]
    Disk(#[from] luc_disk::Error),
    #[error("{}: this is no lagdisk; load kernel/lagdisk and give /dev/lagdisk0", .0.display())]
    NotLagdisk(PathBuf),
    #[error("--fs {fs}: its checker '{tool}' was not found; install {package}")]
    NoChecker {
        fs: String,
        tool: &'static str,
        /// Package that contains the checker.
        package: &'static str,
    },
    #[error("cannot start '{program}': {reason}; check its path and that it is executable")]
    Start { program: String, reason: io::Error },
    #[error("'{program}' ended before the power was cut ({how}); {advice}")]
    Ended {
        program: String,
        /// Exit status, and its last words.
        how: String,
        advice: &'static str,
    },
    #[error(
        "'{program}' acknowledged nothing in {seconds} s; it must print a line per durable file, \
         and flush its output"
    )]
    Silent {
        program: String,
        /// Time that it was given.
        seconds: u64,
    },
    #[error(
        "'{program}' acknowledged '{line}', which cannot be read: {reason}; print one path per \
         line, relative to LUC_POWERCUT_DIR"
    )]
    Path { program: String, line: String, reason: String },
    #[error("{path}: {what} failed: {reason}; `luc disk remove --all` clears what is left", path = .path.display())]
    Io { path: PathBuf, what: &'static str, reason: io::Error },
    #[error("interrupted")]
    Interrupted,
}

impl From<FileOperationError> for PowercutError {
    fn from(FileOperationError { what, path, source }: FileOperationError) -> Self {
        Self::Io { what, path, reason: source }
    }
}
