//! Finds the preload library: beside the program (a build tree) or in the installed layout.

use std::path::PathBuf;

use luc_gate::environment::LIBRARY;
use luc_units::OnPath as _;

use crate::LaunchError;

/// The library's path: beside the running program, else `../lib/luc/` from there.
///
/// # Errors
///
/// [`LaunchError::NoLibrary`] with both places; [`LaunchError::InexpressiblePath`].
pub fn find() -> Result<PathBuf, LaunchError> {
    let program = std::env::current_exe()
        .map_err(LaunchError::io("find the path of", "the running program"))?;
    let directory = program.parent().unwrap_or(&program);
    let beside = directory.join(LIBRARY);
    let installed = directory.parent().unwrap_or(directory).join("lib/luc").join(LIBRARY);
    let found = if beside.exists() {
        beside
    } else if installed.exists() {
        installed
    } else {
        return Err(LaunchError::NoLibrary { beside, installed });
    };
    if found.to_string_lossy().contains([' ', ':']) {
        return Err(LaunchError::InexpressiblePath(found));
    }
    Ok(found)
}
