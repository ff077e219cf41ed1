//! Programs that are installed beside this one.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why another program does not run instead of this one.
#[derive(Debug)]
pub enum NotRun {
    /// This program's own path is not known.
    Lost(io::Error),
    /// It is neither beside this program, whose path this is, nor on the PATH.
    Missing(PathBuf),
    /// It is there, and the kernel does not run it.
    Refused(PathBuf, io::Error),
}

/// Runs a program with these words in place of this one: the program beside this one, else the first on the PATH.
/// Returns only where that cannot be done.
pub fn become_program(name: &str, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> NotRun {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return NotRun::Lost(error),
    };
    match find_here(&own, name) {
        None => NotRun::Missing(own),
        Some(program) => {
            let error = Command::new(&program).args(words).exec();
            NotRun::Refused(program, error)
        }
    }
}

/// The program beside this one, else the first on the PATH; `None`: there is none.
#[must_use]
pub fn beside(name: &str) -> Option<PathBuf> {
    find_here(&std::env::current_exe().ok()?, name)
}

fn find_here(own: &Path, name: &str) -> Option<PathBuf> {
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    find(own, name, std::env::split_paths(&path))
}

/// The program beside `own`, else the first in these folders.
fn find(own: &Path, name: &str, path: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let beside = own.with_file_name(name);
    let on_path = path
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name));
    std::iter::once(beside)
        .chain(on_path)
        .find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_beside_this_one_comes_first() {
        let [beside, other] = [(), ()].map(|()| tempfile::tempdir().expect("a directory"));
        let luc = beside.path().join("luc");
        let found = || {
            let path = [PathBuf::from("relative"), other.path().to_owned()];
            find(&luc, "luc-fleet", path.into_iter())
        };
        assert_eq!(found(), None);
        let on_path = other.path().join("luc-fleet");
        std::fs::write(&on_path, "").expect("written");
        assert_eq!(found(), Some(on_path));
        let own = beside.path().join("luc-fleet");
        std::fs::write(&own, "").expect("written");
        assert_eq!(found(), Some(own));
    }

    #[test]
    fn one_that_is_nowhere_is_missing() {
        let words: [&str; 0] = [];
        let outcome = become_program("luc-no-such-program", words);
        assert!(matches!(outcome, NotRun::Missing(_)), "{outcome:?}");
    }
}
