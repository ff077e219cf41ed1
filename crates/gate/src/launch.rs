//! Runs a command under the gate and reports its figures.
//!
//! - [`library`]: finds `libluc_gate_preload.so`.
//! - [`session`]: the directory of this user's shared files, and its end; [`shared`]: the files.
//! - [`supervise`]: starts the command, passes signals on, waits.
//! - [`commits`]: how many commits each journal made meanwhile.
//! - [`outcome`]: all of it as figures, for JSON; [`text`]: for people.

pub mod commits;
pub mod library;
pub mod outcome;
pub mod session;
pub mod shared;
pub mod supervise;
pub mod text;

use std::io;
use std::path::PathBuf;
use std::time::Instant;

pub use outcome::{FileSystemOutcome, Outcome};
pub use supervise::{Command, Ending};

use crate::call::Settings;
use crate::environment::{COUNT_ONLY, devices_to_text};
use crate::figures::RunFigures;

/// Why a command cannot be run under the gate.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The preload library is not where it belongs.
    #[error(
        "libluc_gate_preload.so is neither in {beside} nor in {installed}: run `make build`, or install LUC as a whole"
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

/// Observers of a run.
#[derive(Default)]
pub struct Around<'a> {
    /// Devices, major and minor number, on which the kernel module batches: calls are only counted.
    pub count_only: Vec<(u32, u32)>,
    /// Told again and again, while the command runs, its process and what it has done so far.
    pub watch: Option<Watch<'a>>,
}

/// Observes a run in progress: the command's process number, and its figures if it has any.
pub type Watch<'a> = &'a mut dyn FnMut(u32, Option<&RunFigures>);

impl std::fmt::Debug for Around<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Around")
            .field("count_only", &self.count_only)
            .finish_non_exhaustive()
    }
}

/// Runs `command` as `settings` say and waits for its end. Where there is no room for the shared files, or no
/// safe place, it runs as without the gate, and the outcome says why.
///
/// # Errors
///
/// [`LaunchError`]; the command has not been started then.
pub fn run(
    command: &Command,
    settings: &Settings,
    around: Around<'_>,
) -> Result<Outcome, LaunchError> {
    let library = library::find()?;
    let (shared, refused) = match shared::Shared::open(&settings.policy) {
        Ok(shared) => (Some(shared), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let mut environment = shared
        .as_ref()
        .map_or_else(Vec::new, |shared| shared.environment(&library, settings));
    if shared.is_some() && !around.count_only.is_empty() {
        let devices = devices_to_text(&around.count_only);
        environment.push((COUNT_ONLY.into(), devices.into()));
    }
    let commits = commits::Commits::read();
    let started = Instant::now();
    let ending = match around.watch {
        None => supervise::run(command, &environment, None)?,
        Some(watch) => {
            let figures = shared.as_ref().map(|shared| shared.figures.counters);
            let mut look = |process| watch(process, figures);
            supervise::run(command, &environment, Some(&mut look))?
        }
    };
    let ran = outcome::Ran {
        policy: settings.policy,
        ending,
        elapsed: started.elapsed(),
        refused,
    };
    Ok(Outcome::collect(
        shared.as_ref(),
        ran,
        &around.count_only,
        &commits,
    ))
}
