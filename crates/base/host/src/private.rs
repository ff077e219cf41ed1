//! Directories in places for all, as /tmp: under names that nobody can guess, and for this user alone.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Where the kernel gives random numbers.
const RANDOM: &str = "/proc/sys/kernel/random/uuid";
const MODE: u32 = 0o700;

/// Makes `parent/NAME-RANDOM`, which must not be there.
///
/// # Errors
/// The system's.
pub fn create(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let random = fs::read_to_string(RANDOM)?;
    let path = parent.join(format!("{name}-{}", random.trim()));
    DirBuilder::new().mode(MODE).create(&path)?;
    Ok(path)
}

/// Whether it is a directory itself, of this user's, that nobody else may enter.
#[must_use]
pub fn is_own(path: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path)
        .is_ok_and(|about| about.is_dir() && about.uid() == me && about.mode() & 0o7777 == MODE)
}
