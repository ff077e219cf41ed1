//! JSON: on standard output, or in a file that is written all at once or left as it was.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use luc_host::interrupt_flag::SignalGuard;
use luc_host::write_whole;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::geteuid;
use serde::Serialize;

/// Rights of a new file.
const MODE: u32 = 0o666;

/// Reason why a file does not get its JSON.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    #[error("{path} cannot be written; give --json another path: {source}", path = .path.display())]
    Path { path: PathBuf, source: io::Error },
    #[error("{path} cannot be written: check the space left: {source}", path = .path.display())]
    Space { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Signals(io::Error),
    #[error(transparent)]
    Value(#[from] serde_json::Error),
}

/// Prints a value as JSON with line breaks.
///
/// # Errors
/// A value that JSON cannot express. What standard output refuses is told at the [end](crate::finish).
pub fn print_json(value: &impl Serialize) -> Result<(), serde_json::Error> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Writes a value as JSON with line breaks, piece by piece: it may be too large to be held as text.
///
/// # Errors
/// Those of `out`.
pub fn write_json(mut out: impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)
}

/// A file for JSON. That it can be written is checked before the work, so that a wrong path costs no run. Its content
/// stays until [`JsonFile::write`].
#[derive(Debug)]
pub struct JsonFile {
    path: PathBuf,
    /// The file, if it is there already.
    found: Option<File>,
}

impl JsonFile {
    /// Checks that the file, or a new one in its folder, can be written.
    ///
    /// # Errors
    /// [`JsonError::Path`].
    pub fn new(path: &Path) -> Result<Self, JsonError> {
        let found = match File::options().append(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let rights = Access::WRITE_OK | Access::EXEC_OK;
                let allowed = accessat(CWD, folder(path), rights, AtFlags::EACCESS);
                allowed.map(|()| None).map_err(io::Error::from)
            }
            opened => opened.map(Some),
        };
        let path = path.to_owned();
        match found {
            Ok(found) => Ok(Self { path, found }),
            Err(source) => Err(JsonError::Path { path, source }),
        }
    }

    /// Writes a value. Signals that end this process wait meanwhile.
    ///
    /// # Errors
    /// [`JsonError`]; a file that can be replaced is then as it was.
    pub fn write(self, value: &impl Serialize) -> Result<(), JsonError> {
        let _held = SignalGuard::install().map_err(JsonError::Signals)?;
        let text = serde_json::to_vec_pretty(value)?;
        self.put(&text).map_err(|source| JsonError::Space { path: self.path, source })
    }

    fn put(&self, text: &[u8]) -> io::Result<()> {
        let Some(mut found) = self.found.as_ref() else {
            return write_whole::write(&self.path, text, MODE);
        };
        let known = found.metadata()?;
        if known.is_file() && !is_of_descriptor(&self.path) {
            // A link's target is replaced, not the link.
            let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
            if is_ours_alone(&known) && write_whole::write(&path, text, known.mode() & MODE).is_ok()
            {
                // The process may give away fewer rights to new files.
                return fs::set_permissions(&path, known.permissions());
            }
            // In a folder that only others may change, or mounted by itself, it cannot be replaced either.
            found.set_len(0)?;
        }
        found.write_all(text)
    }
}

/// Whether a file can be replaced by one of this process: by another user's it would change hands, and other names of
/// it would still name what was there.
fn is_ours_alone(known: &Metadata) -> bool {
    known.uid() == geteuid().as_raw() && known.nlink() == 1
}

/// Whether a path names what is open: others write there as well.
fn is_of_descriptor(path: &Path) -> bool {
    let mut names = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"].iter();
    names.any(|name| path.starts_with(name))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
