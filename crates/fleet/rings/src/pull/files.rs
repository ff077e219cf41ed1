//! The files of segments.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use luc_events::ring::{self, Segment};

use super::PullError;
use crate::window::WindowError;

/// How much was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    pub segments: u64,
    /// Segments that the ring's recorder removed before they could be taken, as far as is known here.
    pub gone: u64,
    pub files: u64,
    /// Their bytes in all.
    pub bytes: u64,
}

/// Takes segments one by one, the newest first: what the ring's recorder removes meanwhile are the oldest, so that those
/// that were taken follow each other.
///
/// # Errors
/// What `take` says of a segment that is still there; [`WindowError::GoesOn`] if none could be taken.
pub(super) fn newest_first(
    segments: &[Segment],
    mut take: impl FnMut(&Segment, &mut Received) -> Result<(), PullError>,
) -> Result<Received, PullError> {
    let mut received = Received::default();
    for (older, segment) in segments.iter().enumerate().rev() {
        match take(segment, &mut received) {
            Ok(()) => received.segments += 1,
            Err(PullError::Io { .. }) if !segment.path.exists() => {
                received.gone = older as u64 + 1;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    match segments {
        [first, ..] if received.segments == 0 => Err(WindowError::GoesOn {
            path: first.path.parent().unwrap_or(&first.path).to_path_buf(),
        }
        .into()),
        _ => Ok(received),
    }
}

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
