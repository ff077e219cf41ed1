//! A file that appears whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write, stdout};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use tempfile::NamedTempFile;

/// The file that a format is written to until it is complete.
#[derive(Debug)]
pub(super) enum Writer {
    Stdout(BufWriter<Stdout>),
    File(BufWriter<File>),
}

impl Write for Writer {
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

/// A file under a temporary name, removed when dropped; or standard output.
#[derive(Debug)]
pub(super) struct Output(Option<(NamedTempFile, PathBuf)>);

impl Output {
    /// Begins a file.
    ///
    /// # Errors
    ///
    /// If something other than a file is there, or nothing can be written there.
    pub(super) fn create(path: PathBuf) -> anyhow::Result<(Self, Writer)> {
        if path == Path::new("-") {
            if stdout().is_terminal() {
                bail!("-: standard output is a terminal; name a file or send it into a pipe");
            }
            return Ok((Self(None), Writer::Stdout(BufWriter::new(stdout()))));
        }
        // A link's target is replaced, not the link.
        let path = match fs::canonicalize(&path) {
            Ok(whole) => whole,
            Err(error) if error.kind() == io::ErrorKind::NotFound => path,
            Err(error) => return Err(refused(&path, &error)),
        };
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            bail!(
                "{}: this is not a regular file; name another one, or - for standard output",
                path.display()
            );
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .prefix(".luc-report-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| refused(&path, &error))?;
        let writer = file
            .as_file()
            .try_clone()
            .context("a file cannot be used")?;
        Ok((
            Self(Some((file, path))),
            Writer::File(BufWriter::with_capacity(1 << 16, writer)),
        ))
    }

    /// Puts the whole file in its place and says so.
    ///
    /// # Errors
    ///
    /// If it cannot be put there.
    pub(super) fn put(self) -> anyhow::Result<()> {
        let Some((file, path)) = self.0 else {
            return Ok(());
        };
        let written = file
            .as_file()
            .sync_data()
            .and_then(|()| file.as_file().metadata())
            .map_err(|error| refused(&path, &error))?;
        file.persist(&path)
            .map_err(|error| refused(&path, &error.error))?;
        let bytes = luc_units::figures::Size(written.len() as f64);
        eprintln!("luc: wrote {} ({bytes})", path.display());
        Ok(())
    }
}

fn refused(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!(
        "{}: cannot be written: {error}; check the path, its permissions and the space left",
        path.display()
    )
}
