//! Allows one daemon at a time: two daemons would freeze the same tasks against each other.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::ThrottleError;

/// Held while a daemon runs. The kernel releases it when the daemon ends, also by being killed.
#[derive(Debug)]
pub(super) struct DaemonLock {
    _file: File,
}

impl DaemonLock {
    /// Takes the lock in `folder`, and creates the folder.
    pub(super) fn take(folder: &Path) -> Result<Self, ThrottleError> {
        let path = folder.join("daemon.lock");
        let open = || -> io::Result<File> {
            DirBuilder::new().mode(0o700).recursive(true).create(folder)?;
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW)
                .open(&path)
        };
        let mut file = open().map_err(ThrottleError::record(&path))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut process = String::new();
            // The process id improves the message, but is not needed.
            let _ = file.read_to_string(&mut process);
            return Err(ThrottleError::Running(process.trim().to_owned()));
        }
        let write = |file: &mut File| -> io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        write(&mut file).map_err(ThrottleError::record(&path))?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_names_the_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = DaemonLock::take(folder.path()).expect("the first");
        let said = DaemonLock::take(folder.path()).expect_err("the second").to_string();
        assert!(said.contains(&std::process::id().to_string()), "{said}");
        drop(first);
        DaemonLock::take(folder.path()).expect("free again");
    }
}
