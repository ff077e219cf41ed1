//! The shared files of this user: made by the first `luc run`, gone with the last.
//!
//! Every `luc run` holds a shared lock on a file in the directory. A run that can make it exclusive at the end is the
//! last and removes the directory. A run whose lock is on a removed file starts over. A `luc run` that is killed loses
//! its lock, and the next one clears its files before it starts. While a systemd unit needs the directory
//! ([`crate::unit_shared_files`]), it stays.

use std::ffi::{CString, OsStr};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use luc_units::{FileOperationError, OnPath as _};
use rustix::fs::{FlockOperation, flock};

use crate::figures::RunFigures;
use crate::rounds::UserRounds;
use crate::shared_values::{self, MapError, Shareable};
use crate::time_namespace;

/// Folder with the directories of all users.
pub const SHM_FOLDER: &str = "/dev/shm";

/// Prefix of the name of a user's directory, before the user's number.
pub const DIRECTORY_PREFIX: &str = "luc-gate-";

/// Prefix of the name of a systemd unit's figures, before the unit's name.
pub const UNIT_PREFIX: &str = "unit-";

/// Name of the file in the directory that every run locks.
pub(crate) const LOCK_NAME: &str = "lock";

/// Part of the name of a directory that nobody needs any more, while it is emptied.
const GONE_MARK: &str = ".gone-";

/// Prefix of the names of runs' files.
const RUN_PREFIX: &str = "run-";

/// Reasons why a user's shared files cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SharedFilesError {
    #[error("{path} cannot be used for shared files: {reason}; remove it and try again")]
    Unsafe { path: PathBuf, reason: &'static str },
    #[error(transparent)]
    System(#[from] FileOperationError),
}

/// A user's directory of shared files, held while a run goes on.
#[derive(Debug)]
pub struct UserDirectory {
    directory: PathBuf,
    lock: File,
}

/// The figures of one run; their file is removed with them.
#[derive(Debug)]
pub struct FiguresFile {
    guard: FileGuard,
    pub counters: &'static RunFigures,
}

#[derive(Debug)]
struct FileGuard(PathBuf);

impl FiguresFile {
    pub fn path(&self) -> &Path {
        &self.guard.0
    }
}

impl UserDirectory {
    /// Opens `directory`, and makes it if it is missing.
    ///
    /// # Errors
    /// [`SharedFilesError::Unsafe`]: its name is taken by something that others can change.
    pub fn open_at(directory: PathBuf) -> Result<Self, SharedFilesError> {
        remove_gone(&directory);
        loop {
            match DirBuilder::new().mode(0o700).create(&directory) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(SharedFilesError::io("make", &directory)(error));
                }
                _ => {}
            }
            match fs::symlink_metadata(&directory) {
                Ok(found) => check(&directory, &found)?,
                // Its last user has just removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(SharedFilesError::io("look at", &directory)(error)),
            }
            let path = directory.join(LOCK_NAME);
            let options = OpenOptions::new().write(true).create(true).mode(0o600).clone();
            let lock = match options.open(&path) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(SharedFilesError::io("open", path)(error)),
            };
            let ours = lock.metadata().map_err(SharedFilesError::io("look at", &path))?.ino();
            let is_there = || fs::metadata(&path).is_ok_and(|there| there.ino() == ours);
            // Exclusive only if no other run is going on: what is there was left by one that was killed.
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() && is_there() {
                clear(&directory).map_err(SharedFilesError::io("clear", &directory))?;
            }
            flock(&lock, FlockOperation::LockShared)
                .map_err(SharedFilesError::io("lock", &path))?;
            if is_there() {
                return Ok(Self { directory, lock });
            }
        }
    }

    /// Makes the file for a run's figures.
    ///
    /// # Errors
    /// [`SharedFilesError::System`]: there is no room for it.
    pub fn figures(&self) -> Result<FiguresFile, SharedFilesError> {
        let path = (0u32..)
            .map(|n| self.directory.join(format!("{RUN_PREFIX}{}-{n}", std::process::id())))
            .find(|path| !path.exists())
            .unwrap_or_else(|| self.directory.join("run"));
        // The file is removed with the guard, also when there turns out to be no room for it.
        let guard = FileGuard(path);
        let counters = create(&guard.0)?;
        Ok(FiguresFile { guard, counters })
    }

    /// The path of a shared file of this name.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Drop for UserDirectory {
    fn drop(&mut self) {
        // Exclusive only if no other run is going on; then nobody needs the files any more. Programs
        // that outlive their `luc run` keep what they have mapped. A run that starts now must not find a
        // directory that is being emptied: it is renamed first.
        if flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_ok()
            && !is_of_units(&self.directory)
        {
            let mut gone = self.directory.clone().into_os_string();
            gone.push(format!("{GONE_MARK}{}", std::process::id()));
            if fs::rename(&self.directory, &gone).is_ok() {
                let _ = fs::remove_dir_all(gone);
            }
        }
    }
}

impl Drop for FileGuard {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Makes or opens a shared file with all of its memory, and maps it.
pub fn create<T: Shareable>(path: &Path) -> Result<&'static T, SharedFilesError> {
    let name =
        CString::new(path.as_os_str().as_bytes()).map_err(SharedFilesError::io("name", path))?;
    shared_values::create(&name).map_err(|error| match error {
        MapError::System(errno) => {
            SharedFilesError::io("make", path)(io::Error::from_raw_os_error(errno))
        }
        MapError::NotOurs | MapError::OtherLayout => {
            SharedFilesError::Unsafe { path: path.into(), reason: "it is not a file of ours" }
        }
    })
}

/// Makes or opens rounds. New ones have times of this process' clock.
pub fn create_rounds(path: &Path) -> Result<&'static UserRounds, SharedFilesError> {
    let rounds: &UserRounds = create(path)?;
    rounds.begin_clock(time_namespace::namespace().unwrap_or(0));
    Ok(rounds)
}

/// Removes the remains of `directory` that a run left when it was killed while it emptied it.
fn remove_gone(directory: &Path) {
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
        return;
    };
    let mut prefix = name.to_owned();
    prefix.push(GONE_MARK);
    let is_gone = |entry: &OsStr| entry.as_bytes().starts_with(prefix.as_bytes());
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = || check(&entry.path(), &entry.metadata()?).map_err(io::Error::other);
        if is_gone(&entry.file_name()) && is_ours().is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a systemd unit needs a directory, or this cannot be known.
fn is_of_units(directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory) else {
        return true;
    };
    entries.flatten().any(|entry| is_of_unit(&entry.file_name()))
}

/// Whether a file's name in a user's directory shows that a unit needs the directory.
pub(crate) fn is_of_unit(name: &OsStr) -> bool {
    name.as_bytes().starts_with(UNIT_PREFIX.as_bytes())
}

/// Removes all but the lock from a directory that no run uses. While units need it, removes only files of runs.
fn clear(directory: &Path) -> io::Result<()> {
    let is_needed = is_of_units(directory);
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == LOCK_NAME || (is_needed && !name.as_bytes().starts_with(RUN_PREFIX.as_bytes())) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn check(directory: &Path, found: &fs::Metadata) -> Result<(), SharedFilesError> {
    let unsafe_because = |reason| Err(SharedFilesError::Unsafe { path: directory.into(), reason });
    if !found.is_dir() {
        unsafe_because("it is no directory")
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        unsafe_because("it belongs to another user")
    } else if found.mode() & 0o077 != 0 {
        unsafe_because("others may enter it")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_last_session_removes_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("gate");
        let first = UserDirectory::open_at(directory.clone()).unwrap();
        let second = UserDirectory::open_at(directory.clone()).unwrap();
        let figures = second.figures().unwrap();
        drop(first);
        assert!(directory.exists());
        drop(figures);
        drop(second);
        assert!(!directory.exists());
    }

    #[test]
    fn a_directory_that_a_killed_run_was_emptying_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let gone = place.path().join("gate.gone-17");
        DirBuilder::new().mode(0o700).create(&gone).unwrap();
        fs::write(gone.join("run-1-0"), "old").unwrap();
        drop(UserDirectory::open_at(place.path().join("gate")).unwrap());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_session_left_is_cleared_by_the_next() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("gate");
        DirBuilder::new().mode(0o700).create(&directory).unwrap();
        fs::create_dir(directory.join("below")).unwrap();
        fs::write(directory.join("run-1-0"), "old").unwrap();
        let names = || -> Vec<_> {
            let entries = fs::read_dir(&directory).unwrap();
            entries.map(|entry| entry.unwrap().file_name()).collect()
        };
        let first = UserDirectory::open_at(directory.clone()).unwrap();
        assert_eq!(names(), [LOCK_NAME]);
        let figures = first.figures().unwrap();
        let second = UserDirectory::open_at(directory.clone()).unwrap();
        assert_eq!(names().len(), 2, "of a run that goes on nothing is taken");
        drop(figures);
        drop((first, second));
        assert!(!directory.exists());
    }

    #[test]
    fn a_directory_that_others_may_enter_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("gate");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        let error = UserDirectory::open_at(directory).unwrap_err();
        assert!(error.to_string().contains("others may enter"), "{error}");
    }
}
