//! Writes files whole, or leaves them as they were.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Replaces the file `path` by `content`, by way of a file beside it. The process' mask limits the rights in `mode`.
///
/// # Errors
/// Those of the file system; the new file is then removed.
pub fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let new = folder.join(format!(".{}.new", name.to_string_lossy()));
    let written = write_beside((path, folder, &new), content, mode);
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

fn write_beside(
    (path, folder, new): (&Path, &Path, &Path),
    content: &[u8],
    mode: u32,
) -> io::Result<()> {
    let _ = fs::remove_file(new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(new, path)?;
    File::open(folder)?.sync_all()
}
