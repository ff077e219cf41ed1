//! A directory for files of our own, which is not left behind.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::SqlError;

/// How names of directories begin.
const NAME: &str = "luc-fleet-sql";
/// Locked while its directory is used.
const LOCK: &str = "lock";
/// The same before it is locked.
const NEW_LOCK: &str = "lock.new";
const TRIES: usize = 10;

/// A directory that is removed with this, and that nobody else may enter. What a killed process has left is removed by
/// the next one of the same user.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// The kernel unlocks it, whatever ends the process.
    _lock: File,
}

impl Directory {
    /// In `parent`, else where temporary files are.
    ///
    /// # Errors
    /// [`SqlError::Directory`].
    pub fn new(parent: Option<&Path>) -> Result<Self, SqlError> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        let failed = |reason| SqlError::Directory { path: parent.clone(), reason };
        // Executors find it under its whole path.
        let whole = parent.canonicalize().map_err(failed)?;
        remove_old(&whole);
        let path = luc_host::private::create(&whole, NAME).map_err(failed)?;
        match locked(&path) {
            Ok(lock) => Ok(Self { path, _lock: lock }),
            Err(reason) => {
                // It is just made, so that there is nothing else to do where it cannot be removed.
                let _ = fs::remove_dir_all(&path);
                Err(failed(reason))
            }
        }
    }

    /// Where it is, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What a thread that still computes writes meanwhile would be in the way.
        for _ in 0..TRIES {
            if fs::remove_dir_all(&self.path).is_ok() {
                return;
            }
        }
    }
}

/// The lock of a directory. It gets its name when it is locked: before, another process would take the directory for one
/// that was left.
fn locked(directory: &Path) -> io::Result<File> {
    let new = directory.join(NEW_LOCK);
    let lock = File::create_new(&new)?;
    lock.try_lock()?;
    fs::rename(new, directory.join(LOCK))?;
    Ok(lock)
}

/// Removes what killed processes of this user have left. Whatever cannot be removed stays.
fn remove_old(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let is_ours = entry.file_name().to_string_lossy().starts_with(NAME);
        let path = entry.path();
        if !is_ours || !luc_host::private::is_own(&path) {
            continue;
        }
        // One that has no lock yet is just being made. NFS locks only what is open for writing.
        let lock = File::options().write(true).open(path.join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_used_is_not() {
        let parent = tempfile::tempdir().expect("a directory");
        let used = Directory::new(Some(parent.path())).expect("made");
        let left = Directory::new(Some(parent.path())).expect("made");
        let old = left.path().to_owned();
        // As after a kill: the lock is gone, the directory is not.
        left._lock.unlock().expect("unlocked");
        std::mem::forget(left);
        assert!(old.is_dir());
        let next = Directory::new(Some(parent.path())).expect("made");
        assert!(!old.exists());
        assert!(used.path().is_dir() && next.path().is_dir());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
