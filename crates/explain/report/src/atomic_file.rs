//! Files that appear whole or not at all.

use std::fmt;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write, stdout};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use luc_units::number_formats::FormattedSize;
use tempfile::NamedTempFile;

/// The reason why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// Standard output is a terminal.
    #[error("-: standard output is a terminal; name a file or send it into a pipe")]
    Terminal,
    /// Something else than a file has this name.
    #[error("{path}: this is not a regular file; name another one, or - for standard output", path = .0.display())]
    NoFile(PathBuf),
    #[error("{path}: cannot be written: {error}; check the path, its permissions and the space left", path = .path.display())]
    Refused { path: PathBuf, error: io::Error },
}

/// Writer of a file under a temporary name, or of standard output.
#[derive(Debug)]
pub enum AtomicFileWriter {
    Stdout(BufWriter<Stdout>),
    /// A file under a temporary name.
    File(BufWriter<File>),
}

impl Write for AtomicFileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File(out) => out.flush(),
        }
    }
}

/// A path for a file, which could be written when it was checked; `None` is standard output. Targets are equal if they
/// are one file, whatever its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputTarget(Option<PathBuf>);

/// A file under a temporary name, removed when dropped; or standard output.
#[derive(Debug)]
pub struct AtomicOutput(Option<(NamedTempFile, PathBuf)>);

/// Path and size of a file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    path: PathBuf,
    bytes: u64,
}

impl fmt::Display for WrittenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wrote {} ({})", self.path.display(), FormattedSize(self.bytes as f64))
    }
}

impl OutputTarget {
    /// Checks a path, and makes nothing yet; `-` is standard output.
    ///
    /// # Errors
    /// If something other than a file is there, or its folder is missing.
    pub fn new(path: &Path) -> Result<Self, OutputError> {
        if path == Path::new("-") {
            if stdout().is_terminal() {
                return Err(OutputError::Terminal);
            }
            return Ok(Self(None));
        }
        // A link's target is replaced, not the link.
        let path = match fs::canonicalize(path) {
            Ok(whole) => whole,
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(refused(path, error)),
        };
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(OutputError::NoFile(path));
        }
        let folder = fs::canonicalize(folder(&path)).map_err(|error| refused(&path, error))?;
        match path.file_name() {
            Some(name) => Ok(Self(Some(folder.join(name)))),
            None => Err(OutputError::NoFile(path)),
        }
    }

    /// Begins the file under a temporary name.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub fn begin(self) -> Result<(AtomicOutput, AtomicFileWriter), OutputError> {
        let Some(path) = self.0 else {
            return Ok((AtomicOutput(None), AtomicFileWriter::Stdout(BufWriter::new(stdout()))));
        };
        let file = tempfile::Builder::new()
            .prefix(".luc-report-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder(&path))
            .map_err(|error| refused(&path, error))?;
        let writer = file.as_file().try_clone().map_err(|error| refused(&path, error))?;
        Ok((
            AtomicOutput(Some((file, path))),
            AtomicFileWriter::File(BufWriter::with_capacity(1 << 16, writer)),
        ))
    }
}

impl AtomicOutput {
    /// Moves the complete file to its path. Returns `None` for standard output.
    ///
    /// # Errors
    /// If it cannot be put there.
    pub fn put(self) -> Result<Option<WrittenFile>, OutputError> {
        let Some((file, path)) = self.0 else {
            return Ok(None);
        };
        let written = file
            .as_file()
            .sync_data()
            .and_then(|()| file.as_file().metadata())
            .map_err(|error| refused(&path, error))?;
        file.persist(&path).map_err(|error| refused(&path, error.error))?;
        Ok(Some(WrittenFile { path, bytes: written.len() }))
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn refused(path: &Path, error: io::Error) -> OutputError {
    OutputError::Refused { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("page");
        let begin = || OutputTarget::new(&path).expect("good").begin().expect("begun");
        let names = || fs::read_dir(folder.path()).expect("listed").count();
        let (output, mut writer) = begin();
        writer.write_all(b"half").expect("written");
        assert!(!path.exists());
        drop((output, writer));
        assert_eq!(names(), 0);
        let (output, mut writer) = begin();
        writer.write_all(b"whole").expect("written");
        writer.flush().expect("written");
        let written = output.put().expect("put").expect("a file");
        assert_eq!(fs::read(&path).expect("readable"), b"whole");
        assert_eq!(names(), 1);
        assert!(written.to_string().ends_with("page (5 B)"), "{written}");
    }

    #[test]
    fn what_is_no_place_for_a_file_is_refused_before_anything_is_made() {
        let folder = tempfile::tempdir().expect("a directory");
        let refused = |path: &Path| OutputTarget::new(path).expect_err("refused").to_string();
        assert!(refused(folder.path()).contains("not a regular file"));
        assert!(refused(&folder.path().join("missing/page")).contains("cannot be written"));
        assert!(refused(Path::new("/dev/null")).contains("/dev/null"));
        assert!(refused(&folder.path().join("missing/..")).contains("cannot be written"));
        assert!(refused(Path::new("")).contains("not a regular file"));
    }

    #[test]
    fn two_names_of_a_file_are_one_target() {
        let folder = tempfile::tempdir().expect("a directory");
        let target = |name: &str| OutputTarget::new(&folder.path().join(name)).expect("good");
        assert_eq!(target("page"), target("./page"));
        assert_ne!(target("page"), target("other"));
        fs::write(folder.path().join("page"), "old").expect("written");
        std::os::unix::fs::symlink("page", folder.path().join("link")).expect("made");
        assert_eq!(target("page"), target("link"));
    }
}
