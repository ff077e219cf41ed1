//! One cgroup: creation, freezing, thawing, removal.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::ThrottleError;

/// Name prefix of cgroups that are made here as parents of commands' cgroups.
pub(crate) const MADE_PREFIX: &str = "luc-throttle-";

const FREEZE: &str = "cgroup.freeze";
pub(crate) const PROCESSES: &str = "cgroup.procs";
pub(crate) const THREADS: &str = "cgroup.threads";
const TYPE: &str = "cgroup.type";
const CONTROLLERS: &str = "cgroup.controllers";
const SUBTREE: &str = "cgroup.subtree_control";

/// A cgroup whose `cgroup.freeze` is open. So freezing takes one system call, and never hits a later cgroup of the same
/// name.
#[derive(Debug)]
pub struct FreezableCgroup {
    path: PathBuf,
    id: u64,
    freeze: File,
    is_threaded: bool,
}

impl FreezableCgroup {
    /// Opens a cgroup that exists.
    pub fn open(path: &Path) -> Result<Self, ThrottleError> {
        let about = fs::metadata(path).map_err(ThrottleError::cgroup("find", path))?;
        let file = path.join(FREEZE);
        let freeze = OpenOptions::new().write(true).open(&file).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                ThrottleError::NoFreezer(path.to_owned())
            } else {
                ThrottleError::cgroup("open", &file)(error)
            }
        })?;
        let kind = fs::read_to_string(path.join(TYPE)).unwrap_or_default();
        Ok(Self {
            path: path.to_owned(),
            id: about.ino(),
            freeze,
            is_threaded: kind.trim() == "threaded",
        })
    }

    /// Creates a cgroup and opens it.
    pub fn create(path: &Path) -> Result<Self, ThrottleError> {
        fs::create_dir(path).map_err(|error| match error.kind() {
            // This process is root without its capabilities.
            io::ErrorKind::PermissionDenied => ThrottleError::Privileges,
            _ => ThrottleError::cgroup("make", path)(error),
        })?;
        Self::open(path).inspect_err(|_| {
            // The error to report is why it could not be opened.
            let _ = fs::remove_dir(path);
        })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number by which BPF programs know it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Asks the kernel to stop the cgroup's processes on their way to user space, or to let them go on.
    ///
    /// # Errors
    ///
    /// Those of the system; ENODEV: it was removed.
    pub fn set_frozen(&self, frozen: bool) -> io::Result<()> {
        (&self.freeze).write_all(if frozen { b"1" } else { b"0" })
    }

    /// Whether anyone, luc or not, has asked to freeze this cgroup.
    pub fn is_asked_to_freeze(&self) -> io::Result<bool> {
        Ok(fs::read_to_string(self.path.join(FREEZE))?.trim() == "1")
    }

    /// Its processes, without those of cgroups below it.
    pub fn processes(&self) -> io::Result<Vec<u32>> {
        read_ids(&self.path.join(PROCESSES))
    }

    /// Its threads, if it has single threads and no processes.
    pub fn single_threads(&self) -> io::Result<Vec<u32>> {
        if self.is_threaded { read_ids(&self.path.join(THREADS)) } else { Ok(Vec::new()) }
    }

    /// Opens the file to which a process writes "0" to become a member.
    pub fn entrance(&self) -> Result<File, ThrottleError> {
        let path = self.path.join(PROCESSES);
        OpenOptions::new().write(true).open(&path).map_err(ThrottleError::cgroup("open", &path))
    }

    /// Writes a setting, such as `io.max`.
    pub fn set(&self, file: &str, value: &str) -> Result<(), ThrottleError> {
        let path = self.path.join(file);
        fs::write(&path, value).map_err(ThrottleError::cgroup("write", &path))
    }

    /// Gives the cgroups below it the io controller, if this one has it, so that schedulers tell them apart. Returns
    /// whether it has it.
    pub fn delegate_io(&self) -> Result<bool, ThrottleError> {
        let has = fs::read_to_string(self.path.join(CONTROLLERS))
            .unwrap_or_default()
            .split_whitespace()
            .any(|controller| controller == "io");
        if has {
            self.set(SUBTREE, "+io")?;
        }
        Ok(has)
    }

    /// Removes it. Processes that are still in it move to `refuge`.
    pub fn remove(&self, refuge: &Path) -> Result<(), ThrottleError> {
        let procs = refuge.join(PROCESSES);
        for process in self.processes().unwrap_or_default() {
            // A process that has ended meanwhile is no longer in the way.
            let _ = fs::write(&procs, process.to_string());
        }
        // Processes leave their cgroup a moment after they are reaped.
        let mut tries = 0;
        loop {
            match fs::remove_dir(&self.path) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && tries < 100 => {
                    tries += 1;
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                other => return other.map_err(ThrottleError::cgroup("remove", &self.path)),
            }
        }
    }
}

/// Reads a file of process or thread numbers.
pub(crate) fn read_ids(file: &Path) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(file)?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Whether a cgroup was made for a command.
pub(crate) fn is_made(path: &Path) -> bool {
    let parent = path.parent().and_then(Path::file_name);
    parent.is_some_and(|name| name.to_string_lossy().starts_with(MADE_PREFIX))
}

/// Thaws the cgroup at `path`. Returns whether it exists.
pub fn thaw_at(path: &Path) -> io::Result<bool> {
    let file = path.join(FREEZE);
    if path.file_name() == Some(OsStr::new("..")) || !path.is_absolute() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no cgroup's path"));
    }
    match OpenOptions::new().write(true).open(&file) {
        Ok(mut file) => match file.write_all(b"0") {
            // Removed since it was opened.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(false),
            written => written.map(|()| true),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
