//! This user's folder of files that are fetched or built once.

use std::env;
use std::fs;
use std::path::PathBuf;

use crate::error::Error;

/// `$XDG_CACHE_HOME/luc` or `~/.cache/luc`; `None` where neither variable has an absolute path.
pub(crate) fn path() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base =
        variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("luc"))
}

/// Returns the folder `name` in the cache, and makes it if it is not there.
///
/// # Errors
///
/// [`Error::NoKernel`] if there is no cache, [`Error::File`] if the folder cannot be made.
pub(crate) fn make(name: &str) -> Result<PathBuf, Error> {
    let folder = path()
        .ok_or_else(|| Error::NoKernel {
            version: "any".to_owned(),
            reason: "there is no cache folder: set HOME or XDG_CACHE_HOME".to_owned(),
        })?
        .join(name);
    fs::create_dir_all(&folder).map_err(|source| Error::File { path: folder.clone(), source })?;
    Ok(folder)
}
