//! Why a live view ends.

use std::io;

use luc_probe::ProbeError;
use luc_throttle::ThrottleError;

/// Why nothing can be shown, or nothing more. The text is one line.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// Nothing can be recorded here.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Nothing is known of the tasks at the disks.
    #[error(transparent)]
    Throttle(#[from] ThrottleError),
    /// The recorder's thread is gone.
    #[error("the recorder ended")]
    RecorderEnded,
    /// The terminal, or the output, does not work.
    #[error("{what}: {reason}")]
    Io {
        /// What cannot be done.
        what: &'static str,
        #[source]
        reason: io::Error,
    },
}

/// An error of the system's, with what could not be done.
pub(crate) fn failed(what: &'static str) -> impl FnOnce(io::Error) -> TopError {
    move |reason| TopError::Io { what, reason }
}
