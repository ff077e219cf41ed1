//! Finds the file that `execvp` would run for a command.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::InspectError;

/// Folders that glibc searches when PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The program that `execvp(command)` would run with the given PATH from the folder `cwd`.
///
/// A command with a slash is a path. Any other is looked for in each folder of PATH (an empty one is `cwd`). Files that
/// may not be executed are passed over, as by `execvp`.
///
/// # Errors
/// [`InspectError::NotFound`], [`InspectError::NotExecutable`], [`InspectError::IsDirectory`] or
/// [`InspectError::NotAFile`].
pub fn resolve(
    command: &OsStr,
    path_env: Option<&OsStr>,
    cwd: &Path,
) -> Result<PathBuf, InspectError> {
    let not_found = |searched: String| InspectError::NotFound {
        command: format!("`{}`", command.to_string_lossy()),
        searched,
    };
    if command.is_empty() {
        return Err(not_found("with an empty name".to_owned()));
    }
    if command.as_bytes().contains(&b'/') {
        return match executable(&cwd.join(command)) {
            Ok(path) => Ok(path),
            Err(Refusal::Missing) => Err(not_found("at this path".to_owned())),
            Err(Refusal::Unfit(error)) => Err(error),
        };
    }

    let search = path_env.unwrap_or(OsStr::new(DEFAULT_PATH));
    let mut refused = None;
    for folder in search.as_bytes().split(|&byte| byte == b':') {
        match executable(&cwd.join(OsStr::from_bytes(folder)).join(command)) {
            Ok(path) => return Ok(path),
            Err(Refusal::Missing) => {}
            Err(Refusal::Unfit(error)) => {
                refused.get_or_insert(error);
            }
        }
    }
    Err(refused.unwrap_or_else(|| not_found(format!("in PATH ({})", search.to_string_lossy()))))
}

enum Refusal {
    Missing,
    Unfit(InspectError),
}

fn executable(path: &Path) -> Result<PathBuf, Refusal> {
    let metadata = path.metadata().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Refusal::Unfit(InspectError::NotExecutable(path.to_path_buf()))
        }
        _ => Refusal::Missing,
    })?;
    if metadata.is_dir() {
        return Err(Refusal::Unfit(InspectError::IsDirectory(path.to_path_buf())));
    }
    if !metadata.is_file() {
        return Err(Refusal::Unfit(InspectError::NotAFile(path.to_path_buf())));
    }
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(|_| Refusal::Unfit(InspectError::NotExecutable(path.to_path_buf())))?;
    Ok(path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program_in(folder: &Path, name: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn searches_path_in_order_and_passes_over_what_cannot_run() {
        let home = tempfile::tempdir().unwrap();
        let (first, second) = (home.path().join("a"), home.path().join("b"));
        fs::create_dir(&first).unwrap();
        fs::create_dir(&second).unwrap();
        program_in(&first, "tool", 0o644);
        let tool = program_in(&second, "tool", 0o755);
        let search = format!("{}:{}", first.display(), second.display());
        let found = resolve("tool".as_ref(), Some(search.as_ref()), home.path()).unwrap();
        assert_eq!(found, tool);
        fs::remove_file(&tool).unwrap();
        let error = resolve("tool".as_ref(), Some(search.as_ref()), home.path()).unwrap_err();
        assert!(matches!(error, InspectError::NotExecutable(path) if path == first.join("tool")));
    }

    #[test]
    fn an_empty_folder_of_path_is_the_working_folder() {
        let home = tempfile::tempdir().unwrap();
        let tool = program_in(home.path(), "tool", 0o755);
        let found = resolve("tool".as_ref(), Some("/nowhere:".as_ref()), home.path()).unwrap();
        assert_eq!(found, tool);
    }

    #[test]
    fn a_slash_makes_it_a_path() {
        let home = tempfile::tempdir().unwrap();
        program_in(home.path(), "tool", 0o755);
        fs::create_dir(home.path().join("folder")).unwrap();
        let look = |command: &str| resolve(command.as_ref(), Some("".as_ref()), home.path());
        assert_eq!(look("./tool").unwrap(), home.path().join("./tool"));
        assert!(matches!(look("./folder"), Err(InspectError::IsDirectory(_))));
        let error = look("./missing").unwrap_err().to_string();
        assert_eq!(
            error,
            "`./missing`: no such program at this path; check the spelling or give its whole path"
        );
    }

    #[test]
    fn names_that_are_nowhere_say_where_they_were_sought() {
        let error = resolve("no-such".as_ref(), Some("/bin".as_ref()), Path::new("/")).unwrap_err();
        assert!(error.to_string().contains("in PATH (/bin)"), "{error}");
        assert!(resolve("".as_ref(), None, Path::new("/")).is_err());
        assert!(resolve("sh".as_ref(), None, Path::new("/")).is_ok());
    }
}
