//! A distribution's kernel, unpacked into the cache but never installed.

mod bzimage;
mod module;
mod package;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache;
use crate::error::Error;
use crate::tools;

/// Where kernels are in the cache. The number is raised when more of a package is unpacked, so that nobody takes what an
/// earlier version has left.
const FOLDER: &str = "vm/3";

/// The kernel of a `linux-image` package in the cache: the uncompressed image and its modules.
#[derive(Clone, Debug)]
pub struct Kernel {
    release: String,
    folder: PathBuf,
}

impl Kernel {
    /// The kernel of `version`: a whole release (`6.1.0-56-amd64`) or its beginning (`6.1`). For a
    /// beginning the release whose headers are installed comes first, then what the archive offers. It
    /// is fetched by `apt-get download` if the cache does not have it.
    ///
    /// # Errors
    ///
    /// [`Error::NoKernel`] if the distribution has none, [`Error::MissingTool`], or what unpacking meets.
    pub fn find(version: &str) -> Result<Self, Error> {
        let cache = cache::make(FOLDER)?;
        let release = package::release(version, &cache)?;
        let folder = cache.join(&release);
        if !folder.join("vmlinux").is_file() {
            package::unpack(&release, &cache, &folder)?;
        }
        Ok(Self { release, folder })
    }

    /// As [`Kernel::find`], where this machine has all that a guest needs.
    ///
    /// # Errors
    ///
    /// As [`Kernel::find`], and what [`missing`](crate::missing) says.
    pub fn bootable(version: &str) -> Result<Self, Error> {
        tools::missing().map_or_else(|| Self::find(version), Err)
    }

    /// Its release, as `uname -r` prints it.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// The folder to build modules in, if the matching `linux-headers` package is installed.
    pub fn headers(&self) -> Option<PathBuf> {
        headers(&self.release)
    }

    /// The uncompressed image.
    pub(crate) fn image(&self) -> PathBuf {
        self.folder.join("vmlinux")
    }

    /// Its folder in the cache, in which `lib/modules` is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The files of a module and of all that it needs, in the order of loading. Empty if it is built in.
    ///
    /// # Errors
    ///
    /// [`Error::Command`] if the kernel has no such module.
    pub(crate) fn modules(&self, name: &str) -> Result<Vec<PathBuf>, Error> {
        let mut command = Command::new(tools::find("modprobe")?);
        command
            .arg("-d")
            .arg(&self.folder)
            .args(["-S", &self.release, "--show-depends", name]);
        let lines = String::from_utf8_lossy(&tools::output(&mut command)?).into_owned();
        let files = lines
            .lines()
            .filter_map(|line| line.strip_prefix("insmod "));
        Ok(files
            .filter_map(|line| line.split_whitespace().next())
            .map(PathBuf::from)
            .collect())
    }
}

fn headers(release: &str) -> Option<PathBuf> {
    let folder = Path::new("/lib/modules").join(release).join("build");
    folder.join("Makefile").is_file().then_some(folder)
}
