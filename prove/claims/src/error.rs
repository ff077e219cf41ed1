//! Errors of claims and raw data.

use luc_harness::EvaluateError;
use luc_units::FileOperationError;

/// An error of claims or of the raw data that they are about.
#[derive(Debug, thiserror::Error)]
pub enum ClaimsError {
    #[error("the claims of {part} are wrong: {reason}")]
    Claims {
        /// The part, or its page's title.
        part: String,
        reason: String,
    },
    #[error(transparent)]
    File(#[from] FileOperationError),
}

impl From<ClaimsError> for EvaluateError {
    fn from(error: ClaimsError) -> Self {
        Self::Claims(Box::new(error))
    }
}
