//! Builds `luc.ko` from the sources in this program, in a folder of its own.
//!
//! - [`embedded_sources`]: the module's sources.
//! - `build_folder`: the folder, which nobody else can change.
//! - [`headers`]: the headers of a kernel, and the package that brings them.

mod build_folder;
pub mod embedded_sources;
pub mod headers;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use luc_host::installed_programs::tool;
use luc_units::OnPath as _;
use rustix::fs::{FlockOperation, flock};

use crate::modinfo::ModInfo;
use crate::{Error, MachinePaths};

/// A module file that was built, and its kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltModule {
    pub path: PathBuf,
    /// Release of the kernel that it is for.
    pub kernel: String,
}

/// Condition on which a module is built anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildWhen {
    /// Always run `make`, which skips what has not changed.
    Always,
    /// Build only if sources have changed since the last build.
    Changed,
}

/// Builds the module for `kernel`.
///
/// # Errors
/// [`Error::NoSuchKernel`], [`Error::NoHeaders`], [`Error::NoCache`], [`Error::Unsafe`], [`Error::NoTool`],
/// [`Error::Build`], [`Error::Io`]. A module that was built before stays.
pub fn build(machine: &MachinePaths, kernel: &str, when: BuildWhen) -> Result<BuiltModule, Error> {
    let headers = headers::find(machine, kernel)?;
    let cache = build_folder::folder(machine)?.join(kernel);
    let place = cache.join("build");
    fs::create_dir_all(&place).map_err(Error::io("make", &place))?;
    let lock = cache.join("lock");
    let lock = File::create(&lock).map_err(Error::io("open", lock))?;
    flock(&lock, FlockOperation::LockExclusive).map_err(Error::io("lock", &cache))?;
    let has_changed = embedded_sources::LUC.write(&place)?;
    let path = cache.join("luc.ko");
    if when == BuildWhen::Always || has_changed || !path.exists() {
        // From here on, the earlier build is not of these sources.
        remove(&path)?;
        make(machine, kernel, &headers, &place, &cache.join("build.log"))?;
        let module = place.join("luc.ko");
        fs::rename(&module, &path).map_err(Error::io("move", &module))?;
    }
    Ok(BuiltModule { path, kernel: kernel.to_owned() })
}

/// The cached module for `kernel`, if there is one of this program's version.
pub fn cached(machine: &MachinePaths, kernel: &str) -> Option<PathBuf> {
    let path = build_folder::existing(machine)?.join(kernel).join("luc.ko");
    let info = ModInfo::read(&path).ok()?;
    (info.version == env!("CARGO_PKG_VERSION")).then_some(path)
}

fn make(
    machine: &MachinePaths,
    kernel: &str,
    headers: &Path,
    place: &Path,
    log: &Path,
) -> Result<(), Error> {
    let output = File::create(log).map_err(Error::io("write", log))?;
    let errors = output.try_clone().map_err(Error::io("write", log))?;
    let mut argument = std::ffi::OsString::from("M=");
    argument.push(place);
    let ended = tool("make")
        .arg("-C")
        .arg(headers)
        .arg(argument)
        .arg("modules")
        // An outer make's variables do not concern this one.
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .status()
        .map_err(|source| Error::NoTool {
            tool: "make",
            source,
            install: headers::tools(machine),
        })?;
    if ended.success() && place.join("luc.ko").exists() {
        return Ok(());
    }
    let text = fs::read_to_string(log).unwrap_or_default();
    Err(Error::Build {
        version: kernel.to_owned(),
        reason: first_error(&text),
        log: log.to_owned(),
    })
}

/// The most telling line of a build's output: the first error, else the last line.
fn first_error(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let says_why = |line: &&str| {
        line.contains("error:") || line.contains("not found") || line.contains("No such file")
    };
    let line = lines().find(says_why).or_else(|| lines().next_back());
    line.unwrap_or("make ended without luc.ko").to_owned()
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_first_error() {
        let text =
            "make: Entering\n  CC luc.o\nx.c:3: error: no member\nmake: *** [luc.o] Error 1\n";
        assert_eq!(first_error(text), "x.c:3: error: no member");
        assert_eq!(first_error("a\nlast\n\n"), "last");
        assert_eq!(
            first_error("/bin/sh: 1: gcc-12: not found\nlast"),
            "/bin/sh: 1: gcc-12: not found"
        );
        assert_eq!(first_error(""), "make ended without luc.ko");
    }
}
