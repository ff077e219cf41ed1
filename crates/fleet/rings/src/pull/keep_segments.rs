//! Keeps copies of segments when the ring goes on.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use luc_events::ring::{KEPT, RingSegment};

use super::segment_files::{files, newest_first};
use super::{PullError, ReceivedAmount};
use crate::log_time::LogTime;
use crate::time_window::{TimeWindow, segments};

/// Creates a directory that appears only when it is complete.
///
/// # Errors
/// [`PullError::Exists`], [`PullError::Io`]; errors of `fill`. The directory is then not created.
pub fn put(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), PullError>,
) -> Result<(), PullError> {
    if path.symlink_metadata().is_ok() {
        return Err(PullError::Exists(path.to_path_buf()));
    }
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let folder = tempfile::Builder::new()
        .prefix(".luc-")
        .tempdir_in(parent)
        .map_err(PullError::io(parent, "make a directory in it"))?;
    fill(folder.path())?;
    // If two are created at once, the first stays: a directory is not renamed onto one that has files.
    fs::rename(folder.path(), path).map_err(PullError::io(path, "rename it into place"))?;
    let _ = folder.keep();
    Ok(())
}

/// Links the files of segments into a directory, or copies them to another file system. `look` is as in
/// [`pull`](super::pull).
pub(super) fn copy(
    segments: &[RingSegment],
    to: &Path,
    look: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<ReceivedAmount, PullError> {
    newest_first(segments, |segment, received| {
        let folder = to.join(segment.name.to_string());
        fs::create_dir(&folder).map_err(PullError::io(&folder, "create it"))?;
        let before = *received;
        let copied = copy_files(segment, &folder, received, look);
        if copied.is_err() {
            // A part of a segment is useless.
            *received = before;
            fs::remove_dir_all(&folder).map_err(PullError::io(&folder, "remove it"))?;
        }
        copied
    })
}

fn copy_files(
    segment: &RingSegment,
    folder: &Path,
    received: &mut ReceivedAmount,
    look: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(), PullError> {
    for path in files(&segment.path)? {
        if look(received.bytes).is_break() {
            return Err(PullError::Interrupted);
        }
        let copy = folder.join(path.file_name().unwrap_or_default());
        // A file of a complete segment does not change any more.
        if fs::hard_link(&path, &copy).is_err() {
            fs::copy(&path, &copy).map_err(PullError::io(&path, "copy it"))?;
        }
        let metadata = copy.symlink_metadata().map_err(PullError::io(&copy, "look at it"))?;
        received.files += 1;
        received.bytes += metadata.len();
    }
    Ok(())
}

/// Keeps a window of a ring in a new directory below `kept`, however long the ring goes on. Returns that directory.
///
/// # Errors
/// [`PullError`]; nothing is then kept.
pub fn freeze(
    directory: &Path,
    window: TimeWindow,
) -> Result<(PathBuf, ReceivedAmount), PullError> {
    let segments = segments(directory, window)?;
    let begin = segments.first().map_or(0, |segment| segment.real_ns()[0]);
    let kept = directory.join(KEPT);
    match fs::create_dir(&kept) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(PullError::io(&kept, "create it")(error));
        }
        _ => {}
    }
    // The name has no character that a shell or a source may interpret.
    let seconds = LogTime(begin / 1_000_000_000 * 1_000_000_000);
    let path = kept.join(seconds.to_string().replace([':', '-'], ""));
    let mut received = ReceivedAmount::default();
    put(&path, |folder| {
        received = copy(&segments, folder, &mut |_| ControlFlow::Continue(()))?;
        Ok(())
    })?;
    Ok((path, received))
}
