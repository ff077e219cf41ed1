//! Why there is no demo.

use std::io;
use std::path::PathBuf;

use luc_units::FileOperationError;

/// Why the demo was not shown, or not to its end. The text is one line.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The machine lacks something; all missing things are named.
    #[error("luc demo needs {0}; or give --dir DIR, for the benchmark alone on your own disk")]
    Lacks(String),
    #[error("--dir {}: {reason}; give a directory that you may write to", path.display())]
    Directory { path: PathBuf, reason: io::Error },
    #[error(transparent)]
    Disk(#[from] luc_disk::Error),
    /// A step ended with an unexpected status, after printing the reason.
    #[error("`luc {step}` ended with status {status}")]
    Step {
        step: String,
        /// Exit status, or 128 and the number of the signal that ended it.
        status: u8,
    },
    #[error("the figures of `luc {step}` cannot be read ({reason}): this is a defect of luc")]
    Figures { step: String, reason: serde_json::Error },
    /// The process that clears up did not start, or was killed.
    #[error("the process that clears up after the demo {0}; try again")]
    Guardian(&'static str),
    /// A SIGINT, SIGTERM or SIGHUP came. Everything was removed.
    #[error("interrupted: nothing was left behind")]
    Interrupted,
    #[error(transparent)]
    Io(#[from] FileOperationError),
}
