//! Errors while something is borrowed or given back, each with what to do about it.

use std::io;
use std::path::PathBuf;

use luc_power::frequency::FrequencyError;
use luc_units::FileOperationError;

/// Action of [`BorrowError::File`] for files that root restores from, when another user may have written them.
pub(crate) const TRUST: &str = "trust";

/// Something that cannot be borrowed, or cannot be given back.
#[derive(Debug, thiserror::Error)]
pub enum BorrowError {
    /// A device may not be formatted, or cannot be given back.
    #[error("{path}: {reason}", path = .path.display())]
    Device { path: PathBuf, reason: String },
    /// A device has content that the plan does not give up.
    #[error(
        "{path}: it is not empty ({found}): name another, or write overwrite = true if that may go",
        path = .path.display()
    )]
    NotEmpty {
        path: PathBuf,
        /// Content of the device, as wipefs names it.
        found: String,
    },
    /// A file that a sweep saved cannot be understood.
    #[error(
        "{path}: not what a sweep writes ({reason}): look at the devices yourself, and remove the file",
        path = .path.display()
    )]
    Saved { path: PathBuf, reason: String },
    /// An emulated disk cannot be removed, or a disk needs root.
    #[error(transparent)]
    Disk(#[from] luc_disk::Error),
    #[error(transparent)]
    Frequency(#[from] FrequencyError),
    #[error(
        "plan: scheduler \"{name}\": this kernel has none of that name (there are {loaded}); leave it out"
    )]
    Scheduler { name: &'static str, loaded: String },
    #[error(
        "plan: poll-idle: cannot open {path} ({reason}): run as root, or leave poll-idle out",
        path = crate::borrowed_processors::WAKE_UP_LATENCY
    )]
    WakeUpLatency { reason: io::Error },
    /// The plan's meter of energy does not work.
    #[error("energy.command: {0}; correct the plan's command or regex, or leave it out")]
    Meter(String),
    #[error("plan: {0}")]
    Unit(#[from] luc_units::UnitError),
    #[error(
        "cannot {action} {path}: {reason}; check the folder and give the same command again",
        path = .path.display()
    )]
    File { action: &'static str, path: PathBuf, reason: io::Error },
    #[error("interrupted")]
    Interrupted,
}

impl BorrowError {
    /// Returns whether trying again is of no use: a file is not to be trusted, or not understood.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Saved { .. } => true,
            Self::File { action, .. } => *action == TRUST,
            Self::Frequency(error) => error.is_lasting(),
            _ => false,
        }
    }
}

impl From<FileOperationError> for BorrowError {
    fn from(FileOperationError { what, path, source }: FileOperationError) -> Self {
        Self::File { action: what, path, reason: source }
    }
}
