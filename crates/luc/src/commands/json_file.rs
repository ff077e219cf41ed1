//! A file for JSON that is written all at once, or left as it was.

use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use luc_host::interrupt::Guard;
use luc_host::whole;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::geteuid;

/// Rights of a new file.
const MODE: u32 = 0o666;

/// A file that can be written when it is looked at, so that a wrong path costs no run. Nothing of it is changed before
/// [`JsonFile::write`].
pub(super) struct JsonFile {
    path: PathBuf,
    /// What is there already.
    found: Option<File>,
}

impl JsonFile {
    pub(super) fn new(path: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("{} cannot be written; give --json another path", path.display());
        let found = match File::options().append(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let rights = Access::WRITE_OK | Access::EXEC_OK;
                accessat(CWD, folder(path), rights, AtFlags::EACCESS).with_context(cannot)?;
                None
            }
            opened => Some(opened.with_context(cannot)?),
        };
        Ok(Self { path: path.to_owned(), found })
    }

    /// Writes it. Signals that end this process wait meanwhile.
    pub(super) fn write(self, value: &impl serde::Serialize) -> anyhow::Result<()> {
        let _held = Guard::install()?;
        let text = serde_json::to_vec_pretty(value)?;
        self.put(&text).with_context(|| {
            format!("{} cannot be written: check the space left", self.path.display())
        })
    }

    fn put(&self, text: &[u8]) -> io::Result<()> {
        let Some(mut found) = self.found.as_ref() else {
            return whole::write(&self.path, text, MODE);
        };
        let known = found.metadata()?;
        if known.is_file() && !is_of_descriptor(&self.path) {
            // A link's target is replaced, not the link.
            let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
            if is_ours_alone(&known) && whole::write(&path, text, known.mode() & MODE).is_ok() {
                // The process may give away fewer rights to new files.
                return fs::set_permissions(&path, known.permissions());
            }
            // In a folder that only others may change, or mounted by itself, it cannot be replaced either.
            found.set_len(0)?;
        }
        found.write_all(text)
    }
}

/// Whether a file can be replaced by one of this process: by another user's it would change hands, and other names of it
/// would still name what was there.
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
