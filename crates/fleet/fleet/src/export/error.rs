use std::io;
use std::path::PathBuf;

use crate::error::FleetError;

/// Reason why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Traces cannot be read or put together.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error("{path}: it is there already; name a directory that is not", path = .0.display())]
    Exists(PathBuf),
    #[error("{path}: {reason}; check that the folder is there, who may write there, and the space left", path = .path.display())]
    Output { path: PathBuf, reason: io::Error },
    #[error("interrupted")]
    Interrupted,
    /// SQL cannot name this file.
    #[error("{path:?}: the path is no UTF-8, which SQL scripts need; rename it")]
    Path { path: PathBuf },
}
