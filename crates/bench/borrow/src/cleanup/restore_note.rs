//! Notes from which the next `luc` restores when a sweep and its cleanup process were both killed.
//!
//! A note is `/run/luc/sweep/NAME.json`, which only root may write. It has the [`CleanupState`] in the first line, then
//! process groups. The sweep and its cleanup process hold a lock on it. If the lock is free, nobody cleans up after
//! that sweep.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_host::root_owned;
use luc_units::OnPath as _;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};

use super::process_groups::ProcessGroup;
use super::state::CleanupState;
use crate::error::{BorrowError, TRUST};

/// Time for another command to finish restoring from the note.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

fn folder() -> PathBuf {
    luc_host::run_dir::path().join("sweep")
}

/// An open and locked note.
#[derive(Debug)]
pub(super) struct RestoreNote {
    path: PathBuf,
    file: File,
}

/// Content of a [`RestoreNote`]: names to restore, and process groups to end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RestoreNoteContent {
    pub(super) state: CleanupState,
    pub(super) groups: Vec<ProcessGroup>,
}

impl RestoreNote {
    /// Creates the note of the sweep `name`, or opens the one of an earlier run with its text. Returns `None` for
    /// ordinary users, since root would not trust their notes.
    pub(super) fn take(name: &str) -> Result<Option<Self>, BorrowError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let folder = folder();
        let path = folder.join(format!("{name}.json"));
        let failed = |reason| BorrowError::io("make", &path)(reason);
        let begun = Instant::now();
        loop {
            make(&folder)?;
            match Self::open(&path, true) {
                Ok(Some(note)) => return Ok(Some(note)),
                // Whoever restores from it removes it, and the folder with the last note.
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
            if begun.elapsed() > RESTORE_TIMEOUT {
                return Err(failed(io::Error::other(
                    "another luc restores from it and does not end",
                )));
            }
            sleep(POLL_INTERVAL);
        }
    }

    /// Opens all notes that nobody holds; an error for each that cannot be read.
    pub(super) fn left() -> Vec<Result<Self, BorrowError>> {
        let folder = folder();
        // Usually there is no folder, which costs one system call.
        let Ok(entries) = fs::read_dir(&folder) else {
            return Vec::new();
        };
        if let Some(doubt) = root_owned::doubt_at(&folder) {
            let reason = io::Error::new(io::ErrorKind::PermissionDenied, doubt);
            return vec![Err(BorrowError::io(TRUST, &folder)(reason))];
        }
        let paths = entries.flatten().map(|entry| entry.path());
        let open = |path: PathBuf| match Self::open(&path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => opened.map_err(BorrowError::io("read", &path)).transpose(),
        };
        paths
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .filter_map(open)
            .collect()
    }

    /// Opens and locks a note; `None` if another process holds it or has just removed it.
    fn open(path: &Path, creates: bool) -> io::Result<Option<Self>> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(creates)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)?;
        root_owned::check(&file)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            outcome => outcome?,
        }
        let (mine, named) = (file.metadata()?, fs::metadata(path)?);
        let is_it = (mine.dev(), mine.ino()) == (named.dev(), named.ino());
        Ok(is_it.then(|| Self { path: path.to_owned(), file }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces its content by `state`, without process groups.
    pub(super) fn write(&mut self, state: &CleanupState) -> Result<(), BorrowError> {
        let line = format!("{}\n", serde_json::json!(state));
        self.file
            .set_len(0)
            .and_then(|()| self.file.write_all(line.as_bytes()))
            .map_err(BorrowError::io("write", &self.path))
    }

    /// Adds a process group. A group that has ended in the meantime is left out.
    pub(super) fn add(&mut self, leader: i32) -> Result<(), BorrowError> {
        let text = ProcessGroup::of(leader).map(ProcessGroup::text).unwrap_or_default();
        self.file.write_all(text.as_bytes()).map_err(BorrowError::io("write", &self.path))
    }

    /// Reads its content; `None` if the first line is unfinished, since that sweep had changed nothing.
    pub(super) fn read(&mut self) -> Result<Option<RestoreNoteContent>, BorrowError> {
        let mut text = String::new();
        self.file.read_to_string(&mut text).map_err(BorrowError::io("read", &self.path))?;
        Ok(parse(&text))
    }

    /// Removes it, and the folder with the last note.
    pub(super) fn remove(path: &Path) {
        // A note that cannot be removed does no harm: the next command finds nothing left to restore.
        let _ = fs::remove_file(path);
        let _ = path.parent().map(fs::remove_dir);
    }

    /// Runs `start` so that the process it starts holds the lock as well.
    pub(super) fn inherited<T>(
        note: Option<&Self>,
        start: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let set = |flags| note.map_or(Ok(()), |note| fcntl_setfd(&note.file, flags));
        set(FdFlags::empty())?;
        let started = start();
        set(FdFlags::CLOEXEC)?;
        started
    }
}

fn make(folder: &Path) -> Result<(), BorrowError> {
    let made = DirBuilder::new().mode(0o700).recursive(true).create(folder);
    made.map_err(BorrowError::io("make", folder))?;
    match root_owned::doubt_at(folder) {
        None => Ok(()),
        Some(doubt) => {
            let reason = io::Error::new(io::ErrorKind::PermissionDenied, doubt);
            Err(BorrowError::io("use", folder)(reason))
        }
    }
}

pub(super) fn parse(text: &str) -> Option<RestoreNoteContent> {
    let (state, rest) = text.split_once('\n')?;
    Some(RestoreNoteContent {
        state: serde_json::from_str(state).ok()?,
        // A kill may have cut the last line short.
        groups: rest
            .split_inclusive('\n')
            .filter_map(|line| ProcessGroup::parse(line.strip_suffix('\n')?))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_cut_short_anywhere_is_read_as_far_as_it_goes() {
        let state = CleanupState::made_up(Path::new("/srv/out"));
        let whole = format!("{}\n12 34\n56 78\n", serde_json::json!(state));
        let said = parse(&whole).expect("whole");
        assert_eq!(said.state, state);
        assert_eq!(said.groups.len(), 2);
        let head = whole.find('\n').expect("a line");
        for length in 0..whole.len() {
            let said = parse(&whole[..length]);
            assert_eq!(said.is_some(), length > head, "{length}");
            assert!(said.is_none_or(|said| said.groups.len() < 2));
        }
    }
}
