//! Sources of kernels: the machine's own package sources, and other distributions' archives.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::cache_folder;
use crate::error::Error;
use crate::host_tools;

/// Packages that an image package may be divided into, without the release at their end: Debian's from Linux 6.19 on,
/// and Ubuntu's.
const PIECES: [&str; 3] = ["linux-base-", "linux-binary-", "linux-modules-"];

/// An archive of packages that a kernel can be fetched from.
#[derive(Debug)]
pub(super) struct KernelArchive {
    /// Configuration made by `scripts/setup-kernels.sh`; `None`: the machine's own.
    file: Option<PathBuf>,
}

impl KernelArchive {
    /// Returns the machine's package sources, then the others in the order of their names.
    pub(super) fn all(version: &str) -> Result<Vec<Self>, Error> {
        for tool in ["apt-get", "apt-cache"] {
            if host_tools::which(tool).is_none() {
                return Err(Error::no_kernel(
                    version,
                    "kernels come from apt, which is not here: use Debian or Ubuntu",
                ));
            }
        }
        let folder = cache_folder::path().map(|cache| cache.join("archives"));
        let entries = folder.and_then(|folder| fs::read_dir(folder).ok());
        let mut others: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join("apt.conf"))
            .filter(|file| file.is_file())
            .collect();
        others.sort();
        let all = [None].into_iter().chain(others.into_iter().map(Some));
        Ok(all.map(|file| Self { file }).collect())
    }

    /// Makes a command of apt's that uses this configuration.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C");
        if let Some(file) = &self.file {
            command.env("APT_CONFIG", file);
        }
        command
    }

    /// Returns the releases that have packages whose names begin with `prefix`.
    pub(super) fn releases(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let names = host_tools::output(self.command("apt-cache").args(["pkgnames", prefix]))?;
        let names = String::from_utf8_lossy(&names).into_owned();
        let releases = names.lines().filter_map(|name| name.strip_prefix(prefix));
        Ok(releases.map(str::to_owned).collect())
    }

    pub(super) fn images(&self) -> Result<Vec<String>, Error> {
        self.releases("linux-image-")
    }

    /// Returns the packages that image package `name` is divided into.
    pub(super) fn pieces(&self, name: &str) -> Result<Vec<String>, Error> {
        let lines = host_tools::output(self.command("apt-cache").args(["depends", name]))?;
        let lines = String::from_utf8_lossy(&lines).into_owned();
        let needed = lines.lines().filter_map(|line| line.trim_start().strip_prefix("Depends: "));
        let is_piece = |name: &&str| PIECES.iter().any(|piece| name.starts_with(piece));
        Ok(needed.filter(is_piece).map(str::to_owned).collect())
    }
}
