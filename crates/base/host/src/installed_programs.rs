//! Programs that are installed beside this one, and the system's tools.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Reasons why another program does not run instead of this one.
#[derive(Debug)]
pub enum ExecFailure {
    /// This program's own path is not known.
    Lost(io::Error),
    /// It is neither beside this program, which has this path, nor on the PATH.
    Missing(PathBuf),
    /// The kernel refuses to run it.
    Refused(PathBuf, io::Error),
}

/// Runs a program with these words in place of this one: the program beside this one, else the first on the PATH.
/// Returns only where that cannot be done.
pub fn become_program(
    name: &str,
    words: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> ExecFailure {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return ExecFailure::Lost(error),
    };
    match find_here(&own, name) {
        None => ExecFailure::Missing(own),
        Some(program) => {
            let error = Command::new(&program).args(words).exec();
            ExecFailure::Refused(program, error)
        }
    }
}

/// Folders of the system's tools.
const SYSTEM_PATH: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin";

/// The folders in which this process looks for the system's tools. Root's PATH, as of a cron table, may have folders
/// that others write to. So root looks in fixed folders, and then in those of its PATH that only root can write to.
/// Other users look in the fixed ones last.
#[must_use]
pub fn search_path() -> OsString {
    let own = std::env::var_os("PATH");
    search_path_of(rustix::process::geteuid().is_root(), own)
}

fn search_path_of(is_root: bool, own: Option<OsString>) -> OsString {
    let own: Vec<PathBuf> = own.iter().flat_map(std::env::split_paths).collect();
    let fixed: Vec<PathBuf> = std::env::split_paths(SYSTEM_PATH).collect();
    let folders: Vec<PathBuf> = if is_root {
        let of_root = own.into_iter().filter(|folder| is_of_root_alone(folder));
        fixed.into_iter().chain(of_root).collect()
    } else {
        own.into_iter().chain(fixed).collect()
    };
    // Names with a colon come from no PATH.
    std::env::join_paths(folders).unwrap_or_else(|_| SYSTEM_PATH.into())
}

/// Whether root alone can write to a folder.
fn is_of_root_alone(folder: &Path) -> bool {
    folder.is_absolute()
        && std::fs::metadata(folder)
            .is_ok_and(|found| found.uid() == 0 && found.mode() & 0o022 == 0)
}

/// A command of the system, by its name, with messages in English. It looks for further commands in the same folders.
#[must_use]
pub fn tool(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.env("PATH", search_path()).env("LC_ALL", "C");
    command
}

/// Whether the system has a tool of this name.
#[must_use]
pub fn has_tool(name: &str) -> bool {
    std::env::split_paths(&search_path()).any(|folder| folder.join(name).is_file())
}

/// The program beside this one, else the first on the PATH; `None`: there is none.
#[must_use]
pub fn beside(name: &str) -> Option<PathBuf> {
    find_here(&std::env::current_exe().ok()?, name)
}

/// A part of LUC that is not installed: it is in neither of these places.
#[derive(Debug)]
pub struct NotInstalled {
    pub beside: PathBuf,
    pub installed: PathBuf,
}

/// Finds a file of LUC: beside the program `own` (a build tree), else in `../lib/luc/` from there.
///
/// # Errors
/// [`NotInstalled`] with both places.
pub fn find_part(own: &Path, name: &str) -> Result<PathBuf, NotInstalled> {
    let directory = own.parent().unwrap_or(own);
    let beside = directory.join(name);
    let installed = directory.parent().unwrap_or(directory).join("lib/luc").join(name);
    let found = [&beside, &installed].into_iter().find(|path| path.is_file()).cloned();
    found.ok_or(NotInstalled { beside, installed })
}

fn find_here(own: &Path, name: &str) -> Option<PathBuf> {
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    find(own, name, std::env::split_paths(&path))
}

/// The program beside `own`, else the first in these folders.
fn find(own: &Path, name: &str, path: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let beside = own.with_file_name(name);
    let on_path = path.filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    std::iter::once(beside).chain(on_path).find(|program| program.is_file())
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
    fn root_looks_for_tools_where_only_root_can_write() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a directory");
        let own = || Some(OsString::from(folder.path()));
        let with_mode = |mode| {
            let rights = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(folder.path(), rights).expect("changed");
            search_path_of(true, own())
        };
        assert_eq!(with_mode(0o777), SYSTEM_PATH);
        let path = folder.path().display();
        let of_root = format!("{SYSTEM_PATH}:{path}");
        let is_root = rustix::process::geteuid().is_root();
        let expected = if is_root { &of_root } else { SYSTEM_PATH };
        assert_eq!(with_mode(0o755), OsStr::new(expected));
        let of_a_user = search_path_of(false, own());
        assert_eq!(of_a_user.to_str(), Some(&*format!("{path}:{SYSTEM_PATH}")));
        assert_eq!(search_path_of(false, None), SYSTEM_PATH);
        assert!(has_tool("sh") && !has_tool("luc-no-such-tool"));
        let said = tool("sh").args(["-c", "echo $PATH"]).output().expect("sh runs");
        let said = String::from_utf8(said.stdout).expect("text");
        assert_eq!(OsStr::new(said.trim_end()), search_path());
    }

    #[test]
    fn one_that_is_nowhere_is_missing() {
        let words: [&str; 0] = [];
        let outcome = become_program("luc-no-such-program", words);
        assert!(matches!(outcome, ExecFailure::Missing(_)), "{outcome:?}");
    }
}
