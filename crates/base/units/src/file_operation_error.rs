//! Errors of operations on files.

use std::io;
use std::path::{Path, PathBuf};

/// An operation on a file or a program that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {path}: {source}", path = .path.display())]
pub struct FileOperationError {
    /// Operation, such as "read".
    pub what: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

/// Errors with a variant for a failed operation on a path: all that can be made from [`FileOperationError`].
pub trait OnPath: From<FileOperationError> {
    /// Makes the error of an operation on a path, for `map_err`.
    fn io<E: Into<io::Error>>(
        what: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(E) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::from(FileOperationError { what, path, source: source.into() })
    }
}

impl<T: From<FileOperationError>> OnPath for T {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Error {
        #[error(transparent)]
        Io(#[from] FileOperationError),
    }

    #[test]
    fn an_error_names_the_operation_the_path_and_the_reason() {
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = Error::io("read", "/a")(refused);
        assert_eq!(error.to_string(), "cannot read /a: permission denied");
        let source = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(source.as_deref(), Some("permission denied"));
    }
}
