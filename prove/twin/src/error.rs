//! Errors of the twin, each with what to do about it.

use std::io;
use std::path::PathBuf;

/// Why a process of the twin, or a whole run, ends.
#[derive(Debug, thiserror::Error)]
pub enum TwinError {
    /// A call of the system failed.
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
    /// A file or folder cannot be used.
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    /// Bytes from a connection are none of the twin's messages.
    #[error(
        "a message from {from} cannot be read: {why}; only processes of one version talk to each other"
    )]
    Wire { from: String, why: &'static str },
    /// The other end of a connection has closed it while an answer was due.
    #[error("{from} has closed its connection before it answered; see what it printed")]
    Closed { from: String },
    /// An option that has no meaning, or not with the others.
    #[error("{what}: {why}")]
    Option {
        /// The option and its value.
        what: String,
        /// Mistake in it, and what is possible.
        why: String,
    },
    /// The machine cannot do what was asked for.
    #[error("{what} cannot be done here: {why}")]
    Unable {
        /// Operation that was asked for.
        what: String,
        /// Why not, and what would help.
        why: String,
    },
    /// A process of a run has ended before its time.
    #[error("{name} has ended with {status}; see what it printed above")]
    Ended { name: String, status: String },
}

impl TwinError {
    /// For `map_err`: what was tried.
    pub(crate) fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::System { what, source: source.into() }
    }

    /// For `map_err`: the file.
    pub(crate) fn file<E: Into<io::Error>>(path: impl Into<PathBuf>) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |source| Self::File { path, source: source.into() }
    }
}
