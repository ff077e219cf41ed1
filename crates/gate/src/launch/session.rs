//! The shared files of this user: made by the first `luc run`, gone with the last.
//!
//! Every `luc run` holds a shared lock on a file in the directory. Whoever can make it exclusive at the
//! end is the last and removes the directory; whoever finds that its lock is on a removed file starts
//! over. A `luc run` that is killed loses its lock, and the next one clears what it left before it starts.

use std::ffi::{CString, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::LaunchError;
use crate::call::Settings;
use crate::environment::{DIRECTORY, FIGURES, LONGEST_WAIT_NS, POLICY, RoundsFiles};
use crate::figures::RunFigures;
use crate::memory::{self, MapError};
use crate::policy::Policy;
use crate::rounds::Rounds;

/// The file in the directory that every run locks.
const LOCK: &str = "lock";

/// A user's directory of shared files, held while a run goes on.
#[derive(Debug)]
pub struct Session {
    directory: PathBuf,
    lock: File,
}

/// The figures of one run; their file is removed with them.
#[derive(Debug)]
pub struct Figures {
    path: PathBuf,
    /// The shared counters.
    pub counters: &'static RunFigures,
}

impl Session {
    /// Opens the directory, making it if need be.
    ///
    /// # Errors
    ///
    /// [`LaunchError::UnsafeDirectory`] if its name is taken by something that others can change.
    pub fn open() -> Result<Self, LaunchError> {
        let user = rustix::process::geteuid().as_raw();
        let base = if Path::new("/dev/shm").is_dir() {
            "/dev/shm"
        } else {
            "/tmp"
        };
        Self::open_at(Path::new(base).join(format!("luc-gate-{user}")))
    }

    fn open_at(directory: PathBuf) -> Result<Self, LaunchError> {
        loop {
            match DirBuilder::new().mode(0o700).create(&directory) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(LaunchError::system("make", &directory)(error));
                }
                _ => {}
            }
            match fs::symlink_metadata(&directory) {
                Ok(found) => check(&directory, &found)?,
                // Its last user has just removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(LaunchError::system("look at", &directory)(error)),
            }
            let path = directory.join(LOCK);
            let options = OpenOptions::new()
                .write(true)
                .create(true)
                .mode(0o600)
                .clone();
            let lock = match options.open(&path) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(LaunchError::system("open", path)(error)),
            };
            let ours = lock
                .metadata()
                .map_err(LaunchError::system("look at", &path))?
                .ino();
            let is_there = || fs::metadata(&path).is_ok_and(|there| there.ino() == ours);
            // Exclusive only if no other run is going on: what is there was left by one that was killed.
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() && is_there() {
                clear(&directory).map_err(LaunchError::system("clear", &directory))?;
            }
            flock(&lock, FlockOperation::LockShared)
                .map_err(|error| LaunchError::system("lock", &path)(error.into()))?;
            if is_there() {
                return Ok(Self { directory, lock });
            }
        }
    }

    /// Makes the file for a run's figures.
    ///
    /// # Errors
    ///
    /// [`LaunchError::System`] if there is no room for it.
    pub fn figures(&self) -> Result<Figures, LaunchError> {
        let path = (0u32..)
            .map(|n| {
                self.directory
                    .join(format!("run-{}-{n}", std::process::id()))
            })
            .find(|path| !path.exists())
            .unwrap_or_else(|| self.directory.join("run"));
        let counters = map(&path)?;
        Ok(Figures { path, counters })
    }

    /// The rounds of a device as a run of `policy` left them, if it got that far.
    pub fn rounds(&self, policy: &Policy, major: u32, minor: u32) -> Option<&'static Rounds> {
        let files = RoundsFiles::new(self.directory.to_str()?, policy)?;
        memory::map_existing(files.path(major, minor).as_c_str()).ok()
    }

    /// What a command needs in its environment to take part.
    pub fn environment(
        &self,
        library: &Path,
        settings: &Settings,
        figures: &Figures,
    ) -> Vec<(OsString, OsString)> {
        let mut preload = library.as_os_str().to_owned();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        vec![
            ("LD_PRELOAD".into(), preload),
            (DIRECTORY.into(), self.directory.clone().into()),
            (POLICY.into(), settings.policy.to_string().into()),
            (
                LONGEST_WAIT_NS.into(),
                settings.longest_wait_ns.to_string().into(),
            ),
            (FIGURES.into(), figures.path.clone().into()),
        ]
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Exclusive only if no other run is going on; then nobody needs the files any more. Programs
        // that outlive their `luc run` keep what they have mapped.
        if flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

impl Drop for Figures {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn map(path: &Path) -> Result<&'static RunFigures, LaunchError> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|error| LaunchError::system("name", path)(error.into()))?;
    memory::map(&name).map_err(|error| match error {
        MapError::System(errno) => {
            LaunchError::system("map", path)(io::Error::from_raw_os_error(errno))
        }
        MapError::NotOurs | MapError::OtherLayout => LaunchError::UnsafeDirectory {
            path: path.into(),
            reason: "it is not a file of ours",
        },
    })
}

/// Removes all but the lock from a directory that nobody uses.
fn clear(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
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

fn check(directory: &Path, found: &fs::Metadata) -> Result<(), LaunchError> {
    let unsafe_because = |reason| {
        Err(LaunchError::UnsafeDirectory {
            path: directory.into(),
            reason,
        })
    };
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
        let first = Session::open_at(directory.clone()).unwrap();
        let second = Session::open_at(directory.clone()).unwrap();
        let figures = second.figures().unwrap();
        drop(first);
        assert!(directory.exists());
        drop(figures);
        drop(second);
        assert!(!directory.exists());
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
        let first = Session::open_at(directory.clone()).unwrap();
        assert_eq!(names(), [LOCK]);
        let figures = first.figures().unwrap();
        let second = Session::open_at(directory.clone()).unwrap();
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
        let error = Session::open_at(directory).unwrap_err();
        assert!(error.to_string().contains("others may enter"), "{error}");
    }
}
