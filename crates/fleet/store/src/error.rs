//! Errors of stores, each with the next step.

use std::io;

use luc_fleet_rings::{PullError, WindowError};

/// Reason why segments cannot be put into a store, or taken from it.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    #[error(transparent)]
    Window(#[from] WindowError),
    #[error(transparent)]
    Pull(#[from] PullError),
    #[error("'{text}': {reason}; write it like s3://BUCKET/FOLDER or file:///FOLDER")]
    Url { text: String, reason: String },
    #[error(
        "'{text}': this luc-fleet-store was built without the cargo feature {feature}; build it by `make product-store`"
    )]
    NotBuiltIn { text: String, feature: &'static str },
    #[error("{url}: {reason}; {next}")]
    Refused { url: String, reason: String, next: String },
    #[error("{url}: it has no segment of that time; `luc fleet stored {url}` lists what it has")]
    Nothing { url: String },
    #[error("{url}: segment {number} of that time is missing; ask for a window before or after it")]
    Missing { url: String, number: u32 },
    #[error(
        "{url}: two recordings have a segment {segment} of that time; remove one, and push each host's ring under a name of its own"
    )]
    Twice { url: String, segment: String },
    /// Object that is no segment, whatever its name says.
    #[error("{url}/{object}: it is no segment ({reason}); remove it")]
    NotASegment { url: String, object: String, reason: io::Error },
    #[error("{0}: the ring does not say of which host it is; give a name by --host")]
    NoHost(String),
    #[error("a temporary file: {0}; choose another directory by TMPDIR, or make space")]
    Temporary(io::Error),
    #[error("the output cannot be written: {0}; check the space left")]
    Output(#[source] io::Error),
    #[error("a tar stream is no text: send it to a file or to another program")]
    Terminal,
    #[error("interrupted")]
    Interrupted,
}
