//! The files of a segment.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use luc_events::ring;

use super::PullError;

/// The files of a segment's tables, in the order of their names.
pub(super) fn files(directory: &Path) -> Result<Vec<PathBuf>, PullError> {
    let list = || PullError::io(directory, "list it");
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(list())? {
        let entry = entry.map_err(list())?;
        let name = entry.file_name();
        let is_table = name.to_str().is_some_and(ring::is_file_of_table);
        if is_table && entry.file_type().map_err(list())?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    if files.is_empty() {
        let reason = io::Error::from(io::ErrorKind::NotFound);
        return Err(list()(reason));
    }
    Ok(files)
}
