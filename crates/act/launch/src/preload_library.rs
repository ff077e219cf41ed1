//! Finds the preload library: beside the program (a build tree) or in the installed layout.

use std::path::PathBuf;

use luc_gate::environment_names::LIBRARY;
use luc_host::installed_programs::{NotInstalled, find_part};
use luc_units::OnPath as _;

use crate::LaunchError;

/// Finds the library beside the running program, else in `../lib/luc/` from there.
///
/// # Errors
/// [`LaunchError::NoLibrary`] with both paths; [`LaunchError::InexpressiblePath`].
pub fn find() -> Result<PathBuf, LaunchError> {
    let program = std::env::current_exe()
        .map_err(LaunchError::io("find the path of", "the running program"))?;
    match find_part(&program, LIBRARY) {
        Ok(library) if library.to_string_lossy().contains([' ', ':']) => {
            Err(LaunchError::InexpressiblePath(library))
        }
        Ok(library) => Ok(library),
        Err(NotInstalled { beside, installed }) => {
            Err(LaunchError::NoLibrary { beside, installed })
        }
    }
}
