//! What can be wrong with a store, and what to do about it.

use std::io;

use luc_fleet_rings::{PullError, WindowError};

/// Why segments cannot be put into a store, or taken from it.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// A ring cannot be read.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// A segment cannot be read.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// No store is meant by it.
    #[error("'{text}': {reason}; write it like s3://BUCKET/FOLDER or file:///FOLDER")]
    Url { text: String, reason: String },
    /// This program does not know how to reach it.
    #[error(
        "'{text}': this luc-fleet-store was built without the cargo feature {feature}; build it by `make product-store`"
    )]
    NotBuiltIn { text: String, feature: &'static str },
    /// The store refuses, or cannot be reached.
    #[error("{url}: {reason}; {next}")]
    Refused {
        url: String,
        reason: String,
        /// What to look at.
        next: String,
    },
    /// The store has nothing of the window.
    #[error("{url}: it has no segment of that time; `luc fleet stored {url}` lists what it has")]
    Nothing {
        /// The store, with the host.
        url: String,
    },
    /// A segment in the middle is not there.
    #[error("{url}: segment {number} of that time is missing; ask for a window before or after it")]
    Missing {
        /// The store, with the host.
        url: String,
        number: u32,
    },
    /// Two recordings of one name and time.
    #[error(
        "{url}: two recordings have a segment {segment} of that time; remove one, and push each host's ring under a name of its own"
    )]
    Twice {
        /// The store, with the host.
        url: String,
        segment: String,
    },
    /// An object that is no segment, whatever its name says.
    #[error("{url}/{object}: it is no segment ({reason}); remove it")]
    NotASegment {
        /// The store, with the host.
        url: String,
        object: String,
        reason: io::Error,
    },
    /// A ring whose host has no name.
    #[error("{0}: the ring does not say of which host it is; give a name by --host")]
    NoHost(String),
    #[error("a temporary file: {0}; choose another directory by TMPDIR, or make space")]
    Temporary(io::Error),
    /// The answer cannot be written.
    #[error("the output cannot be written: {0}; check the space left")]
    Output(#[source] io::Error),
    /// A tar stream is no text.
    #[error("a tar stream is no text: send it to a file or to another program")]
    Terminal,
    #[error("interrupted")]
    Interrupted,
}
