//! Errors of inspection, each in one line: the input, the reason, the next step.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Reasons why a program or a file system could not be inspected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InspectError {
    #[error("{command}: no such program {searched}; check the spelling or give its whole path")]
    NotFound {
        command: String,
        /// Place of the search: `in PATH (/bin:/usr/bin)` or `at this path`.
        searched: String,
    },
    #[error("{0}: it is there but may not be executed; try `chmod +x {0}` or another user")]
    NotExecutable(PathBuf),
    #[error("{0}: it is a directory, not a program; give a program inside it")]
    IsDirectory(PathBuf),
    #[error("{0}: it is not a regular file, so it is no program; give a program's path")]
    NotAFile(PathBuf),
    #[error(
        "{script}: its first line asks for {interpreter}, which is not there; install it or correct the line"
    )]
    NoInterpreter {
        script: PathBuf,
        /// Interpreter in its `#!` line.
        interpreter: String,
    },
    #[error(
        "{0}: more than 4 interpreters stand behind it, which Linux refuses; correct its first line"
    )]
    TooDeep(PathBuf),
    #[error("{path}: {source}; check that it exists and that you may read it")]
    Io {
        /// The file or folder that could not be read.
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "device {major}:{minor}: no file system of it is mounted here; `cat /proc/self/mountinfo` lists those that are"
    )]
    NotMounted { major: u32, minor: u32 },
}

impl InspectError {
    /// Makes the error of a path, for `map_err`.
    pub(super) fn io(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Io { path: path.to_path_buf(), source }
    }
}
