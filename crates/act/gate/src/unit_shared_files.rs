//! The files that the processes of a systemd unit share: the rounds of their user, and the unit's figures.
//!
//! No `luc run` is above them. Before the service starts, the unit's first process, `luc-exec prepare`, makes the
//! files. It runs as the unit's user, within the unit's sandbox and limits. They stay until `luc disable`, or until
//! the machine restarts. The library finds them by the unit's name in the environment.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, open, openat, unlinkat};
use rustix::io::Errno;

use crate::figures::RunFigures;
use crate::gate_policy::GatePolicy;
use crate::rounds::UserRounds;
use crate::user_directory::{
    self, DIRECTORY_PREFIX, LOCK_NAME, SHM_FOLDER, SharedFilesError, UNIT_PREFIX, UserDirectory,
    is_of_unit,
};

/// Paths of the files that a systemd unit's processes share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitSharedFiles {
    directory: PathBuf,
    rounds: String,
    figures: String,
}

impl UnitSharedFiles {
    /// The files of `unit`, whose processes run as `user`.
    #[must_use]
    pub fn new(unit: &str, user: u32) -> Self {
        Self::in_place(Path::new(SHM_FOLDER), unit, user)
    }

    /// The files of `unit` in another folder than /dev/shm.
    #[must_use]
    pub fn in_place(place: &Path, unit: &str, user: u32) -> Self {
        Self {
            directory: place.join(format!("{DIRECTORY_PREFIX}{user}")),
            rounds: UserRounds::file_name(&GatePolicy::Auto),
            figures: format!("{UNIT_PREFIX}{unit}"),
        }
    }

    /// File of the rounds, which all programs of the user share.
    #[must_use]
    pub fn rounds(&self) -> PathBuf {
        self.directory.join(&self.rounds)
    }

    #[must_use]
    pub fn figures(&self) -> PathBuf {
        self.directory.join(&self.figures)
    }

    /// Makes the files, as the user of the unit's processes. Figures begin at zero: those of an earlier start are gone.
    ///
    /// # Errors
    /// [`SharedFilesError`]: there is no room, or somebody else has taken the directory's name.
    pub fn make(&self) -> Result<(), SharedFilesError> {
        self.open().map(drop)
    }

    /// Makes the files and maps them, for a supervisor.
    ///
    /// # Errors
    /// Those of [`make`](Self::make).
    pub fn open(&self) -> Result<(&'static UserRounds, &'static RunFigures), SharedFilesError> {
        let _session = UserDirectory::open_at(self.directory.clone())?;
        let rounds = user_directory::create_rounds(&self.rounds())?;
        // None are there at the first start.
        let _ = fs::remove_file(self.figures());
        Ok((rounds, user_directory::create(&self.figures())?))
    }
}

/// Gives the figures of `from`, which has ended, to `to`, and sets them to zero. Both are this user's.
///
/// # Errors
/// The figures are gone; nobody has them then.
pub fn hand_on(from: &str, to: &str) -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    hand_on_in(Path::new(SHM_FOLDER), user, from, to)
}

fn hand_on_in(place: &Path, user: u32, from: &str, to: &str) -> io::Result<()> {
    let [from, to] = [from, to].map(|unit| UnitSharedFiles::in_place(place, unit, user).figures());
    let file = fs::OpenOptions::new().write(true).open(&from)?;
    // All zeros is their beginning.
    (&file).write_all(&vec![0; size_of::<RunFigures>()])?;
    fs::rename(from, to)
}

/// Names of root's units that have figures and whose names end in `ending`.
#[must_use]
pub fn ending_in(ending: &str) -> Vec<String> {
    let entries = fs::read_dir(Path::new(SHM_FOLDER).join(format!("{DIRECTORY_PREFIX}0")));
    let names = entries.into_iter().flatten().flatten();
    names
        .filter_map(|entry| {
            let name = entry.file_name();
            let unit = name.to_str()?.strip_prefix(UNIT_PREFIX)?;
            unit.ends_with(ending).then(|| unit.to_owned())
        })
        .collect()
}

/// Removes the files of `unit`, of any user, and the directories that nobody else needs. For root.
///
/// # Errors
/// The file that could not be removed, with the reason.
pub fn remove(unit: &str) -> io::Result<()> {
    remove_in(Path::new(SHM_FOLDER), unit)
}

fn remove_in(place: &Path, unit: &str) -> io::Result<()> {
    let figures = format!("{UNIT_PREFIX}{unit}");
    let entries = match fs::read_dir(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        if name.as_bytes().starts_with(DIRECTORY_PREFIX.as_bytes()) {
            remove_of(place, &name, &figures).map_err(|error| {
                io::Error::other(format!("{}: {error}", place.join(&name).display()))
            })?;
        }
    }
    Ok(())
}

/// Removes a unit's figures from a directory, which belongs to another user: no name in it is followed.
fn remove_of(place: &Path, name: &OsStr, figures: &str) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::DIRECTORY;
    let directory = match open(place.join(name), flags, Mode::empty()) {
        // Not a directory of ours.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        opened => opened?,
    };
    match unlinkat(&directory, figures, AtFlags::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        removed => removed?,
    }
    let names = names_in(&directory)?;
    if names.iter().any(|name| is_of_unit(name)) || !is_unused(&directory) {
        return Ok(());
    }
    for name in names {
        unlinkat(&directory, name, AtFlags::empty())?;
    }
    match fs::remove_dir(place.join(name)) {
        // A `luc run` has just begun there, or ended.
        Err(error)
            if [io::ErrorKind::DirectoryNotEmpty, io::ErrorKind::NotFound]
                .contains(&error.kind()) =>
        {
            Ok(())
        }
        removed => removed,
    }
}

fn names_in(directory: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Whether no `luc run` goes on in a directory.
fn is_unused(directory: &OwnedFd) -> bool {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    openat(directory, LOCK_NAME, flags, Mode::empty())
        .is_ok_and(|lock| flock(lock.as_fd(), FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(place: &Path, unit: &str) -> UnitSharedFiles {
        let user = rustix::process::geteuid().as_raw();
        UnitSharedFiles::in_place(place, unit, user)
    }

    #[test]
    fn a_unit_s_files_outlive_each_run_and_go_with_the_last_unit() {
        let place = tempfile::tempdir().unwrap();
        let (first, second) =
            (files(place.path(), "a.service"), files(place.path(), "b@1.service"));
        first.make().unwrap();
        second.make().unwrap();
        // A `luc run` of the same user comes and goes.
        drop(UserDirectory::open_at(first.directory.clone()).unwrap());
        assert!(first.rounds().exists() && first.figures().exists());
        remove_in(place.path(), "a.service").unwrap();
        assert!(!first.figures().exists() && second.rounds().exists());
        remove_in(place.path(), "b@1.service").unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn figures_go_on_to_another_unit_from_their_beginning() {
        let place = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let first = files(place.path(), "a.container");
        let (_, figures) = first.open().unwrap();
        figures.file_system(7).unwrap();
        hand_on_in(place.path(), user, "a.container", "b.container").unwrap();
        assert_eq!(figures.used().count(), 0);
        assert!(!first.figures().exists());
        assert!(files(place.path(), "b.container").figures().exists());
        assert!(hand_on_in(place.path(), user, "a.container", "c.container").is_err());
    }

    #[test]
    fn files_that_a_run_uses_stay_until_it_ends() {
        let place = tempfile::tempdir().unwrap();
        let unit = files(place.path(), "a.service");
        unit.make().unwrap();
        let run = UserDirectory::open_at(unit.directory.clone()).unwrap();
        remove_in(place.path(), "a.service").unwrap();
        assert!(unit.rounds().exists());
        drop(run);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_library_looks_where_the_files_are() {
        let unit = UnitSharedFiles::new("a.service", 4_294_967_294);
        let rounds = crate::shared_values::rounds_of_unit(4_294_967_294).unwrap();
        let figures = crate::shared_values::figures_of_unit(4_294_967_294, c"a.service").unwrap();
        let path = |path: &crate::shared_values::SharedPath| {
            PathBuf::from(path.as_c_str().unwrap().to_str().unwrap())
        };
        assert_eq!((path(&rounds), path(&figures)), (unit.rounds(), unit.figures()));
    }

    #[test]
    fn no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let precious = elsewhere.path().join("unit-a.service");
        fs::write(&precious, "x").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), place.path().join("luc-gate-7")).unwrap();
        remove_in(place.path(), "a.service").unwrap();
        assert!(precious.exists());
        let own = place.path().join("luc-gate-8");
        fs::create_dir(&own).unwrap();
        std::os::unix::fs::symlink(&precious, own.join("unit-a.service")).unwrap();
        remove_in(place.path(), "a.service").unwrap();
        assert!(precious.exists() && fs::read_dir(own).unwrap().count() == 0);
    }
}
