//! What can be wrong with claims and raw data.

use std::io;
use std::path::PathBuf;

/// An error of claims or of the raw data that they are about.
#[derive(Debug, thiserror::Error)]
pub enum ClaimsError {
    /// The claims about a plan.
    #[error("the claims of {part} are wrong: {reason}")]
    Claims {
        /// The part, or its page's title.
        part: String,
        /// What is wrong.
        reason: String,
    },
    /// A file.
    #[error("cannot {what} {}: {source}", .path.display())]
    File {
        /// What was tried, such as "read".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl ClaimsError {
    /// For `map_err`: an operation on a file.
    pub(crate) fn file(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }
}
