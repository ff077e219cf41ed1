//! Files that are there as a whole or as they were.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Puts `text` in the place of `path`, by a file beside it. Whatever fails, nothing new is left.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let new = folder.join(format!(".{}.new", name.to_string_lossy()));
    let written = write_beside(path, folder, &new, text);
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

fn write_beside(path: &Path, folder: &Path, new: &Path, text: &str) -> io::Result<()> {
    let _ = fs::remove_file(new);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)?;
    File::open(folder)?.sync_all()
}
