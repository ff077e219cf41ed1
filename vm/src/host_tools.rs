//! Programs of the host that this crate uses.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::error::Error;

/// Programs for guests of another architecture, and their packages.
const FOREIGN: [(&str, &str); 2] =
    [("qemu-system-aarch64", "qemu-system-arm"), ("readelf", "binutils")];
/// Programs and the packages that have them.
const TOOLS: [(&str, &str); 10] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("dpkg-deb", "dpkg"),
    ("depmod", "kmod"),
    ("make", "make"),
    ("modprobe", "kmod"),
    ("tar", "tar"),
    ("unshare", "util-linux"),
    ("xz", "xz-utils"),
    ("zstd", "zstd"),
];

/// Returns what this machine lacks to run virtual machines at all; `None` if it lacks nothing.
pub fn missing() -> Option<Error> {
    if !cfg!(target_arch = "x86_64") {
        return Some(Error::NoKernel {
            version: "any".to_owned(),
            reason: "only x86-64 guests are known: run it on such a machine".to_owned(),
        });
    }
    TOOLS.iter().find_map(|(name, _)| find(name).err())
}

/// Finds a program of [`TOOLS`] or [`FOREIGN`].
///
/// # Errors
///
/// [`Error::MissingTool`] with its package.
pub(crate) fn find(name: &'static str) -> Result<PathBuf, Error> {
    which(name).ok_or_else(|| Error::MissingTool {
        name,
        package: TOOLS
            .iter()
            .chain(&FOREIGN)
            .find(|(tool, _)| *tool == name)
            .map_or(name, |(_, package)| package),
    })
}

/// Finds a program by name in `PATH`, or in folders that only root's `PATH` has.
pub(crate) fn which(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Runs a program to its end and returns its output.
///
/// # Errors
///
/// [`Error::Command`] if it cannot be started or fails.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>, Error> {
    let result = command.output();
    let failed = |reason| Error::Command { command: format!("{command:?}"), reason };
    match result {
        Ok(Output { status, stdout, .. }) if status.success() => Ok(stdout),
        Ok(Output { status, stderr, .. }) => {
            let message = String::from_utf8_lossy(&stderr);
            let last = message.lines().rev().find(|line| !line.trim().is_empty());
            Err(failed(format!("{status}: {}", last.unwrap_or("it said nothing").trim())))
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Reads a file, and names it in the error.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })
}
