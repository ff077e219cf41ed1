//! Why the trials could not be made.

use std::io;
use std::path::PathBuf;

use luc_units::FileOperationError;

/// Trials that could not start or finish. The message is one line that ends with a remedy.
#[derive(Debug, thiserror::Error)]
pub enum FaultsError {
    #[error("no trial is left: give at least one --errno, --call and --policy, or leave them out")]
    Nothing,
    #[error("--beside {0}: not a number of threads; use 1 to 256")]
    Threads(usize),
    #[error(transparent)]
    Disk(#[from] luc_disk::Error),
    #[error(transparent)]
    Bench(#[from] luc_workload::BenchError),
    /// The kernel module, or the file system's journal.
    #[error(transparent)]
    Kernel(#[from] luc_module::Error),
    #[error("cannot start '{program}': {reason}; check its path and that it is executable")]
    Start { program: String, reason: io::Error },
    /// The client did not carry out an order.
    #[error("the client under {arm} {what}: {said}; see the kernel log, then run it again")]
    Client { arm: String, what: String, said: String },
    /// A command's run in which no request failed.
    #[error(
        "no request of '{program}' failed {arm}: let requests fail earlier (--after) or elsewhere (--on, --range)"
    )]
    NothingFailed { program: String, arm: String },
    #[error("{path}: {what} failed: {reason}; `luc disk remove --all` clears what is left", path = .path.display())]
    Io { path: PathBuf, what: &'static str, reason: io::Error },
    #[error("interrupted")]
    Interrupted,
}

impl From<FileOperationError> for FaultsError {
    fn from(FileOperationError { what, path, source }: FileOperationError) -> Self {
        Self::Io { what, path, reason: source }
    }
}
