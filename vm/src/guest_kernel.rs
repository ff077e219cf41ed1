//! A distribution's kernel, unpacked into the cache but never installed.

mod build_module;
mod bzimage;
mod kernel_sources;
mod package;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::architecture::Architecture;
use crate::cache_folder;
use crate::error::Error;
use crate::guest_programs::ProgramRoot;
use crate::host_tools;

/// Folder of kernels in the cache. Raise its number when more of a package is unpacked, so that nothing of an earlier
/// version is taken.
const KERNELS_FOLDER: &str = "vm/4";
/// Folder in the cache into which `scripts/setup-arm64.sh` fetches.
const ARM64_FOLDER: &str = "arm64";

/// The kernel of a `linux-image` package in the cache: the uncompressed image and its modules.
#[derive(Clone, Debug)]
pub struct GuestKernel {
    release: String,
    folder: PathBuf,
    /// Folder of another architecture's programs and libraries.
    root: Option<PathBuf>,
}

impl GuestKernel {
    /// Finds the kernel of `version`: a whole release (`6.1.0-56-amd64`) or its beginning (`6.1`).
    ///
    /// For a beginning, releases with installed headers come first, then those of the machine's archive, then those
    /// of `scripts/setup-kernels.sh`. The kernel is fetched by `apt-get download` if the cache does not have it.
    ///
    /// # Errors
    ///
    /// [`Error::NoKernel`] if the distribution has none, [`Error::MissingTool`], or what unpacking meets.
    pub fn find(version: &str) -> Result<Self, Error> {
        let cache = cache_folder::make(KERNELS_FOLDER)?;
        let release = package::release(version, &cache)?;
        let folder = cache.join(&release);
        if !folder.join("vmlinux").is_file() {
            package::unpack(&release, &cache, &folder)?;
        }
        Ok(Self { release, folder, root: None })
    }

    /// Finds the kernels for 64-bit Arm that `scripts/setup-arm64.sh` has fetched, the oldest first.
    ///
    /// # Errors
    ///
    /// [`Error::NoKernel`] if it has not.
    pub fn arm64() -> Result<Vec<Self>, Error> {
        let missing = || Error::NoKernel {
            version: ARM64_FOLDER.to_owned(),
            reason: "none is in the cache: run scripts/setup-arm64.sh".to_owned(),
        };
        let cache = cache_folder::path().ok_or_else(missing)?.join(ARM64_FOLDER);
        let kernels = cache.join("kernel");
        let mut releases = package::folders(&kernels).collect::<Vec<_>>();
        releases.sort_by_key(|release| package::numbers(release));
        if releases.is_empty() {
            return Err(missing());
        }
        let found = releases.into_iter().map(|release| Self {
            folder: kernels.join(&release),
            release,
            root: Some(cache.join("root")),
        });
        Ok(found.collect())
    }

    /// As [`GuestKernel::find`], if this machine has all that a guest needs.
    ///
    /// # Errors
    ///
    /// As [`GuestKernel::find`], and what [`missing`](crate::missing) says.
    pub fn bootable(version: &str) -> Result<Self, Error> {
        host_tools::missing().map_or_else(|| Self::find(version), Err)
    }

    /// Returns the release that `uname -r` prints.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// Returns the folder to build modules in. It exists if the matching `linux-headers` package is installed, or
    /// `scripts/setup-kernels.sh` has fetched it.
    pub fn headers(&self) -> Option<PathBuf> {
        headers(&self.release).or_else(|| {
            let folder = build_root()?.join(headers_in_root(&self.release));
            folder.join("Makefile").is_file().then_some(folder)
        })
    }

    pub(crate) fn architecture(&self) -> Architecture {
        match self.root {
            Some(_) => Architecture::Aarch64,
            None => Architecture::X86_64,
        }
    }

    /// Root of its guests' programs and libraries.
    pub(crate) fn root(&self) -> ProgramRoot<'_> {
        self.root.as_deref().map_or(ProgramRoot::Host, ProgramRoot::Folder)
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.folder.join("vmlinux")
    }

    /// Folder in the cache that contains `lib/modules`.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the files of a module and of all its dependencies, in the order of loading. Empty if it is built in.
    ///
    /// # Errors
    ///
    /// [`Error::Command`] if the kernel does not have the module.
    pub(crate) fn modules(&self, name: &str) -> Result<Vec<PathBuf>, Error> {
        let mut command = Command::new(host_tools::find("modprobe")?);
        command.arg("-d").arg(&self.folder).args(["-S", &self.release, "--show-depends", name]);
        let lines = String::from_utf8_lossy(&host_tools::output(&mut command)?).into_owned();
        let files = lines.lines().filter_map(|line| line.strip_prefix("insmod "));
        Ok(files.filter_map(|line| line.split_whitespace().next()).map(PathBuf::from).collect())
    }
}

/// Root of a distribution with a compiler, which has headers of other distributions' kernels.
fn build_root() -> Option<PathBuf> {
    Some(cache_folder::path()?.join("archives/root"))
}

/// Folder of headers in the build root.
fn headers_in_root(release: &str) -> String {
    format!("usr/src/linux-headers-{release}")
}

/// Returns the headers that are installed on this machine.
fn headers(release: &str) -> Option<PathBuf> {
    let folder = Path::new("/lib/modules").join(release).join("build");
    folder.join("Makefile").is_file().then_some(folder)
}
