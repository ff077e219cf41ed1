//! Why there is no demo.

use std::io;
use std::path::PathBuf;

use luc_units::Failed;

/// Why the demo was not shown, or not to its end. The text is one line.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The machine lacks something; all of it is named.
    #[error("luc demo needs {0}; or give --dir DIR, for the benchmark alone on your own disk")]
    Lacks(String),
    /// The directory to work in.
    #[error("--dir {}: {reason}; give a directory that you may write to", path.display())]
    Directory {
        path: PathBuf,
        /// What is wrong with it.
        reason: io::Error,
    },
    #[error(transparent)]
    Disk(#[from] luc_disk::Error),
    /// A step ended with another status than it should; it has said why.
    #[error("`luc {step}` ended with status {status}")]
    Step {
        step: String,
        /// Its exit status; 128 and the signal's number if a signal ended it.
        status: u8,
    },
    /// A step's figures cannot be read.
    #[error("the figures of `luc {step}` cannot be read ({reason}): this is a defect of luc")]
    Figures {
        step: String,
        /// What is wrong with them.
        reason: serde_json::Error,
    },
    /// The process that clears up did not start, or was killed.
    #[error("the process that clears up after the demo {0}; try again")]
    Guardian(&'static str),
    /// SIGINT, SIGTERM or SIGHUP; what had been made was taken back.
    #[error("interrupted: nothing was left behind")]
    Interrupted,
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] Failed),
}
