//! Lists and takes the files of segments.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use luc_events::ring::{self, RingSegment};

use super::PullError;
use crate::time_window::WindowError;

/// Amount of what was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceivedAmount {
    pub segments: u64,
    /// Number of segments that the ring's recorder removed before they were taken, as far as known.
    pub gone: u64,
    pub files: u64,
    /// Total size of the files.
    pub bytes: u64,
}

/// Takes segments one by one, the newest first. The recorder removes the oldest meanwhile, so that the taken ones are
/// consecutive.
///
/// # Errors
/// Errors of `take` for a segment that still exists; [`WindowError::GoesOn`] if none could be taken.
pub(super) fn newest_first(
    segments: &[RingSegment],
    mut take: impl FnMut(&RingSegment, &mut ReceivedAmount) -> Result<(), PullError>,
) -> Result<ReceivedAmount, PullError> {
    let mut received = ReceivedAmount::default();
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

/// Lists the files of a segment's tables, ordered by name.
pub(super) fn files(directory: &Path) -> Result<Vec<PathBuf>, PullError> {
    let list = || PullError::io(directory, "list it");
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(list())? {
        let entry = entry.map_err(list())?;
        let is_table = entry.file_name().to_str().is_some_and(ring::is_file_of_table);
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
