//! The folder in which modules are built. Nobody else can write to it, or put another one in its place.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use luc_units::OnPath as _;

use crate::{Error, MachinePaths};

/// Mode bits that let group or others write. With the sticky bit, only a file's owner may remove it from the folder.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// The folder of this user's modules, made if it is missing. Nobody loads a module that another user has built.
///
/// # Errors
/// [`Error::NoCache`] for a user without HOME; [`Error::Unsafe`] with the folder that somebody else could change;
/// [`Error::Io`].
pub(super) fn folder(machine: &MachinePaths) -> Result<PathBuf, Error> {
    let base = base(machine)?;
    fs::create_dir_all(&base).map_err(Error::io("make", &base))?;
    // Without links from here on: what is checked is what is used.
    let base = base.canonicalize().map_err(Error::io("find", &base))?;
    let top = top(machine, &base)?;
    check_to(&base, &top)?;
    let shared = base.join("luc");
    let own = shared.join("kernel");
    for (path, mode) in [(&shared, 0o755), (&own, 0o700)] {
        match DirBuilder::new().mode(mode).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io("make", path)(error));
            }
            _ => check(path, FolderOwner::Ours)?,
        }
    }
    fs::set_permissions(&own, Permissions::from_mode(0o700)).map_err(Error::io("close", &own))?;
    Ok(own)
}

/// The folder of this user's modules, if it is there already.
pub(super) fn existing(machine: &MachinePaths) -> Option<PathBuf> {
    let base = base(machine).ok()?.canonicalize().ok()?;
    let own = base.join("luc/kernel");
    let top = top(machine, &base).ok()?;
    check_to(&base, &top).ok()?;
    check(&base.join("luc"), FolderOwner::Ours).ok()?;
    check(&own, FolderOwner::Ours).ok()?;
    Some(own)
}

/// `/var/cache` for root, else `$XDG_CACHE_HOME` or `~/.cache`.
fn base(machine: &MachinePaths) -> Result<PathBuf, Error> {
    if rustix::process::geteuid().is_root() {
        return Ok(machine.path("/var/cache"));
    }
    of_user(|name| env::var_os(name)).ok_or(Error::NoCache)
}

fn of_user(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| {
        let path = PathBuf::from(variable(name)?);
        path.is_absolute().then_some(path)
    };
    absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))
}

/// The topmost folder that is checked: `/`, or the tree that stands for a machine if `base` is in it.
fn top(machine: &MachinePaths, base: &Path) -> Result<PathBuf, Error> {
    let root = machine.path("/");
    let root = root.canonicalize().map_err(Error::io("find", &root))?;
    Ok(if base.starts_with(&root) { root } else { "/".into() })
}

/// Checks `path` and the folders above it, up to `top`.
fn check_to(path: &Path, top: &Path) -> Result<(), Error> {
    for above in path.ancestors() {
        check(above, FolderOwner::OursOrRoots)?;
        if above == top {
            break;
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FolderOwner {
    Ours,
    OursOrRoots,
}

/// Checks that nobody else can change a folder. In a sticky folder (/tmp) others cannot replace our files.
fn check(path: &Path, whose: FolderOwner) -> Result<(), Error> {
    let found = fs::symlink_metadata(path).map_err(Error::io("read", path))?;
    match objection(&found, rustix::process::geteuid().as_raw(), whose) {
        None => Ok(()),
        Some(reason) => Err(Error::Unsafe { path: path.to_owned(), reason }),
    }
}

fn objection(found: &Metadata, user: u32, whose: FolderOwner) -> Option<String> {
    let (owner, mode) = (found.uid(), found.mode());
    if !found.is_dir() {
        return Some("is no folder".to_owned());
    }
    if owner != user && (whose == FolderOwner::Ours || owner != 0) {
        return Some(format!("belongs to user {owner}"));
    }
    let is_open = mode & OTHERS_WRITE != 0 && (whose == FolderOwner::Ours || mode & STICKY == 0);
    is_open.then(|| format!("can be written by others (mode {:04o})", mode & 0o7777))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user_s(variables: &[(&str, &str)]) -> Option<PathBuf> {
        of_user(|name| {
            let found = variables.iter().find(|(have, _)| *have == name);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn without_a_home_there_is_no_folder() {
        assert_eq!(user_s(&[]), None);
        assert_eq!(user_s(&[("HOME", "")]), None);
        assert_eq!(user_s(&[("HOME", "/h")]), Some("/h/.cache".into()));
        let relative = user_s(&[("XDG_CACHE_HOME", "cache"), ("HOME", "/h")]);
        assert_eq!(relative, Some("/h/.cache".into()));
        let both = user_s(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")]);
        assert_eq!(both, Some("/c".into()));
    }

    #[test]
    fn what_others_could_change_is_refused() {
        let tree = tempfile::tempdir().unwrap();
        let path = tree.path().join("cache");
        fs::create_dir(&path).unwrap();
        let user = fs::metadata(&path).unwrap().uid();
        let say = |mode, user, whose| {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            objection(&fs::symlink_metadata(&path).unwrap(), user, whose)
        };
        assert_eq!(say(0o755, user, FolderOwner::Ours), None);
        assert_eq!(say(0o1777, user, FolderOwner::OursOrRoots), None);
        assert!(say(0o1777, user, FolderOwner::Ours).unwrap().contains("1777"));
        for mode in [0o775, 0o757] {
            let text = say(mode, user, FolderOwner::OursOrRoots).unwrap();
            assert!(text.contains("written by others"), "{text}");
        }
        let text = say(0o755, user + 1, FolderOwner::Ours).unwrap();
        assert!(text.contains("belongs to user"), "{text}");
    }
}
