//! Replaces files as a whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a file so that a reader of `path` sees the old content or the new one.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    fs::write(&new, content)?;
    fs::rename(&new, path)
}
