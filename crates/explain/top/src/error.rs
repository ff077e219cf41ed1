//! Errors of the live views.

use std::io;

use luc_probe::ProbeError;
use luc_throttle::ThrottleError;

/// The reason why nothing can be shown, or nothing more, in one line.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// Events cannot be recorded here.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The use of disks by tasks cannot be read.
    #[error(transparent)]
    Throttle(#[from] ThrottleError),
    /// The recorder's thread has ended.
    #[error("the recorder ended")]
    RecorderEnded,
    /// The terminal, or the output, does not work.
    #[error("{what}: {reason}")]
    Io {
        /// Message about the failed operation, as "the terminal cannot be read".
        what: &'static str,
        #[source]
        reason: io::Error,
    },
}

/// Returns a function that makes an error of a system error, for `map_err`. `what` says what could not be done.
pub(crate) fn failed(what: &'static str) -> impl FnOnce(io::Error) -> TopError {
    move |reason| TopError::Io { what, reason }
}
