//! Programs for the guest, and the shared libraries that they need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::architecture::ARM64_LIBRARIES;
use crate::error::Error;
use crate::host_tools;

/// Root of the programs given by name, and of libraries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProgramRoot<'a> {
    Host,
    /// A folder with unpacked Debian packages for the guest's architecture.
    Folder(&'a Path),
}

/// Folders of programs in a [`ProgramRoot::Folder`].
const PROGRAMS: [&str; 4] = ["usr/bin", "bin", "usr/sbin", "sbin"];

impl ProgramRoot<'_> {
    /// Finds the file of a program given by path or by name.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] if there is none.
    pub(crate) fn locate(self, program: &Path) -> Result<PathBuf, Error> {
        let found = if program.components().count() > 1 {
            program.is_file().then(|| program.to_owned())
        } else {
            match self {
                Self::Host => host_tools::which(&program.to_string_lossy()),
                Self::Folder(root) => {
                    let folders = PROGRAMS.iter().map(|folder| root.join(folder).join(program));
                    folders.into_iter().find(|path| path.is_file())
                }
            }
        };
        found.ok_or_else(|| failed(program, "there is no such file: install or build it"))
    }

    /// Returns the shared libraries and the loader that `program` needs, by their paths in the guest. Empty if it is
    /// static.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] if one of them is not there.
    pub(crate) fn libraries(self, program: &Path) -> Result<BTreeMap<PathBuf, PathBuf>, Error> {
        match self {
            Self::Host => {
                let found = loaded(program)?.into_iter();
                Ok(found.map(|path| (path.clone(), path)).collect())
            }
            Self::Folder(root) => needed(root, program),
        }
    }
}

/// Returns the files that this machine's loader would load.
fn loaded(program: &Path) -> Result<BTreeSet<PathBuf>, Error> {
    let output = Command::new("ldd")
        .arg(program)
        .env("LC_ALL", "C")
        .env_remove("LD_PRELOAD")
        .output()
        .map_err(|error| failed(program, &format!("ldd: {error}: install libc-bin")))?;
    // ldd fails for a static program, a script and the like: these need no library.
    if !output.status.success() {
        return Ok(BTreeSet::new());
    }
    let mut libraries = BTreeSet::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        // "libc.so.6 => /lib/libc.so.6 (0x...)", "/lib64/ld-linux-x86-64.so.2 (0x...)", "linux-vdso.so.1 (0x...)"
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [name, "=>", "not", "found"] => {
                let reason = format!("its library {name} is not there: install it");
                return Err(failed(program, &reason));
            }
            [_, "=>", path, ..] | [path, ..] if path.starts_with('/') => {
                libraries.insert(PathBuf::from(path));
            }
            _ => {}
        }
    }
    Ok(libraries)
}

/// Returns the libraries that a program of another architecture names, and theirs.
fn needed(root: &Path, program: &Path) -> Result<BTreeMap<PathBuf, PathBuf>, Error> {
    let mut all = BTreeMap::new();
    let mut open = vec![program.to_owned()];
    while let Some(file) = open.pop() {
        let mut command = Command::new(host_tools::find("readelf")?);
        command.args(["-W", "-d", "-l"]).arg(&file).env("LC_ALL", "C");
        // It fails for a script: that needs no library.
        let Ok(text) = host_tools::output(&mut command) else {
            continue;
        };
        for name in names(&String::from_utf8_lossy(&text)) {
            let file_name = Path::new(&name).file_name().unwrap_or_default();
            let mut places = ARM64_LIBRARIES.iter().map(|folder| Path::new(folder).join(file_name));
            let found = places.find(|path| root.join(path).is_file());
            let found = found.ok_or_else(|| {
                let reason = format!("its library {name} is not in {}", root.display());
                failed(program, &reason)
            })?;
            let source = root.join(&found);
            // The loader has the path that the program names.
            let guest = if name.starts_with('/') {
                PathBuf::from(name)
            } else {
                Path::new("/").join(found)
            };
            if all.insert(guest, source.clone()).is_none() {
                open.push(source);
            }
        }
    }
    Ok(all)
}

/// Returns the libraries and the loader in the output of readelf.
fn names(text: &str) -> Vec<String> {
    let one = |line: &str| {
        // " 0x0000000000000001 (NEEDED)  Shared library: [libc.so.6]",
        // "      [Requesting program interpreter: /lib/ld-linux-aarch64.so.1]"
        let (_, rest) = line
            .split_once("(NEEDED)")
            .and_then(|(_, rest)| rest.split_once('['))
            .or_else(|| line.split_once("program interpreter: "))?;
        Some(rest.trim_end().trim_end_matches(']').to_owned())
    };
    text.lines().filter_map(one).collect()
}

fn failed(program: &Path, reason: &str) -> Error {
    Error::Program { name: program.display().to_string(), reason: reason.to_owned() }
}

/// Whether a file is a program or a library, which may need libraries.
pub(crate) fn is_elf(file: &Path) -> Result<bool, Error> {
    Ok(host_tools::read(file)?.starts_with(b"\x7fELF"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_needs_is_read() {
        let text = "\
  INTERP         0x000238 0x0000000000000238 0x0000000000000238 0x00001b 0x00001b R   0x1
      [Requesting program interpreter: /lib/ld-linux-aarch64.so.1]
Dynamic section at offset 0xfdc8 contains 26 entries:
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000000c (INIT)               0x5b8
";
        assert_eq!(names(text), ["/lib/ld-linux-aarch64.so.1", "libc.so.6"]);
        assert!(names("There is no dynamic section in this file.\n").is_empty());
    }
}
