//! Runs a command under the gate and reports what came of it.
//!
//! - [`library`]: finds `libluc_gate.so`.
//! - [`session`]: the shared files of this user, and their end.
//! - [`supervise`]: starts the command, passes signals on, waits.
//! - [`commits`]: how many commits each journal made meanwhile.
//! - [`outcome`]: all of it as figures, for JSON; [`text`]: for people.

pub mod commits;
pub mod library;
pub mod outcome;
pub mod session;
pub mod supervise;
pub mod text;

use std::io;
use std::path::PathBuf;
use std::time::Instant;

pub use outcome::{FileSystemOutcome, Outcome};
pub use supervise::{Command, Ending};

use crate::call::Settings;

/// Why a command cannot be run under the gate.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The preload library is not where it belongs.
    #[error(
        "libluc_gate.so is neither in {beside} nor in {installed}: run `make build`, or install LUC as a whole"
    )]
    NoLibrary {
        /// Beside the running program.
        beside: PathBuf,
        /// Where an installed LUC has it.
        installed: PathBuf,
    },
    /// A path with a character that LD_PRELOAD takes for a separator.
    #[error(
        "{0} has a space or a colon in its path, which LD_PRELOAD cannot express: move LUC elsewhere"
    )]
    InexpressiblePath(PathBuf),
    /// The directory for shared files is not safely ours.
    #[error("{path} cannot be used for shared files: {reason}; remove it and try again")]
    UnsafeDirectory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A system call failed.
    #[error("cannot {what} {path}: {source}")]
    System {
        /// What was being done.
        what: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl LaunchError {
    pub(crate) fn system(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::System { what, path, source }
    }
}

/// Runs `command` as `settings` say and waits for its end.
///
/// # Errors
///
/// [`LaunchError`]; the command has not been started then.
pub fn run(command: &Command, settings: &Settings) -> Result<Outcome, LaunchError> {
    let library = library::find()?;
    let session = session::Session::open()?;
    let figures = session.figures()?;
    let environment = session.environment(&library, settings, &figures);
    let commits = commits::Commits::read();
    let started = Instant::now();
    let ending = supervise::run(command, &environment)?;
    let elapsed = started.elapsed();
    Ok(Outcome::collect(
        &session,
        &figures,
        settings.policy,
        ending,
        elapsed,
        &commits,
    ))
}
