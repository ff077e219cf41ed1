//! Directories for this user alone in folders for all, such as /tmp, under names that nobody can guess.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// File by which the kernel gives random names.
const RANDOM_FILE: &str = "/proc/sys/kernel/random/uuid";
const MODE: u32 = 0o700;

/// Makes the directory `parent/NAME-RANDOM_FILE`, which must not be there.
///
/// # Errors
/// The system's.
pub fn create(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let random = fs::read_to_string(RANDOM_FILE)?;
    let path = parent.join(format!("{name}-{}", random.trim()));
    DirBuilder::new().mode(MODE).create(&path)?;
    Ok(path)
}

/// Whether a path is a directory, and no link to one, of this user's that nobody else may enter.
#[must_use]
pub fn is_own(path: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path)
        .is_ok_and(|about| about.is_dir() && about.uid() == me && about.mode() & 0o7777 == MODE)
}
