//! A program of the host and the shared libraries that it needs in the guest.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::tools::which;

/// The file of a program given by path or by name.
///
/// # Errors
///
/// [`Error::Program`] if there is none.
pub(crate) fn locate(program: &Path) -> Result<PathBuf, Error> {
    let found = if program.components().count() > 1 {
        program.is_file().then(|| program.to_owned())
    } else {
        which(&program.to_string_lossy())
    };
    found.ok_or_else(|| Error::Program {
        name: program.display().to_string(),
        reason: "there is no such file: install or build it".to_owned(),
    })
}

/// The shared libraries and the loader that `program` needs: none if it is static.
///
/// # Errors
///
/// [`Error::Program`] if one of them is not there.
pub(crate) fn libraries(program: &Path) -> Result<BTreeSet<PathBuf>, Error> {
    let failed = |reason| Error::Program {
        name: program.display().to_string(),
        reason,
    };
    let output = Command::new("ldd")
        .arg(program)
        .env("LC_ALL", "C")
        .env_remove("LD_PRELOAD")
        .output()
        .map_err(|error| failed(format!("ldd: {error}: install libc-bin")))?;
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
                return Err(failed(format!(
                    "its library {name} is not there: install it"
                )));
            }
            [_, "=>", path, ..] | [path, ..] if path.starts_with('/') => {
                libraries.insert(PathBuf::from(path));
            }
            _ => {}
        }
    }
    Ok(libraries)
}

/// Whether a file is a program or a library, and so may need libraries.
pub(crate) fn is_elf(file: &Path) -> Result<bool, Error> {
    Ok(crate::tools::read(file)?.starts_with(b"\x7fELF"))
}
