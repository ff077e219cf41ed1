//! Runs a command under the gate and reports its figures.
//!
//! - [`preload_library`]: finds `libluc_gate_preload.so`.
//! - [`run_memory`]: the memory that a run shares with the programs it starts.
//! - [`supervise_command`]: starts the command with the `inherited_state` state, passes `signals` on, waits.
//! - [`container_init`]: reaps orphans where `luc run` is the first process of a container.
//! - [`participants`]: processes that took part and those that did not; [`preload_obstacle`]: the reasons;
//!   `unreached_programs`: doubtful ones.
//! - [`commit_counts`]: number of commits of each journal meanwhile.
//! - [`gated_run_outcome`]: all of it as figures, for JSON, with the controllers' `controller_decision`;
//!   [`outcome_text`]: for people.
//! - [`unit_figures`]: figures of the processes of a systemd unit, which no `luc run` starts.

pub mod commit_counts;
pub mod container_init;
mod controller_decision;
pub mod gated_run_outcome;
mod inherited_state;
pub mod outcome_text;
pub mod participants;
pub mod preload_library;
pub mod preload_obstacle;
pub mod run_memory;
mod signals;
pub mod supervise_command;
pub mod unit_figures;
mod unreached_programs;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use controller_decision::GateDecision;
pub use gated_run_outcome::{FileSystemOutcome, GatedRunOutcome};
pub use supervise_command::{CommandEnding, RunCommand};

use luc_units::FileOperationError;
use unreached_programs::UnreachedSearch;

use luc_gate::environment_names::{COUNT_ONLY, NOTIFIED, OF_LIBRARY, devices_to_text};
use luc_gate::figures::RunFigures;
use luc_gate::gated_call::CallSettings;
use luc_gate::user_directory::SharedFilesError;
use luc_notify::NotifyError;
use luc_notify::command_notifier::{NotifierWork, PreparedNotifier, RunningNotifier};

/// Reason why a command cannot be run under the gate.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error(
        "libluc_gate_preload.so is neither in {beside} nor in {installed}: run `make build`, or install LUC as a whole"
    )]
    NoLibrary {
        /// Path beside the running program.
        beside: PathBuf,
        /// Path in an installed LUC.
        installed: PathBuf,
    },
    #[error(
        "{0} has a space or a colon in its path, which LD_PRELOAD cannot express: move LUC elsewhere"
    )]
    InexpressiblePath(PathBuf),
    #[error(transparent)]
    Files(#[from] SharedFilesError),
    #[error(transparent)]
    Notify(#[from] NotifyError),
    #[error(transparent)]
    System(#[from] FileOperationError),
}

/// Way in which the gate reaches a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GateReach {
    /// A library in its programs.
    #[default]
    Library,
    /// Notifications of its system calls. A command that cannot be notified is not started.
    Notifier,
    /// Notifications of its system calls. A command that cannot be notified runs as without luc.
    NotifierIfPossible,
}

/// Surroundings of a run: the gate's way to the command, and observers.
#[derive(Default)]
pub struct RunSurroundings<'a> {
    /// Way in which the gate reaches the command.
    pub reach: GateReach,
    /// Devices, major and minor number, on which the kernel module batches: calls are only counted.
    pub count_only: Vec<(u32, u32)>,
    /// Called with the command's process number as soon as the command has been started.
    pub started: Option<OnStart<'a>>,
    /// Called again and again while the command runs, with its process number and its figures so far.
    pub watch: Option<RunWatcher<'a>>,
}

/// Called with the number of the command's process.
pub type OnStart<'a> = Box<dyn FnOnce(u32) + 'a>;

/// Observes a run in progress: the command's process number, and its figures if it has any.
pub type RunWatcher<'a> = &'a mut dyn FnMut(u32, Option<&RunFigures>);

impl std::fmt::Debug for RunSurroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Around")
            .field("reach", &self.reach)
            .field("count_only", &self.count_only)
            .finish_non_exhaustive()
    }
}

/// Runs `command` as `settings` say and waits for its end. If there is no room or no safe place for the shared files,
/// the command runs without the gate. The outcome then says why.
///
/// # Errors
/// [`LaunchError`]; the command has not been started then.
pub fn run(
    command: &RunCommand,
    settings: &CallSettings,
    around: RunSurroundings<'_>,
) -> Result<GatedRunOutcome, LaunchError> {
    // 1. Memory that the run shares; without it the command runs as without the gate.
    let (shared, no_share) = match share(settings) {
        Ok(shared) => (Some(shared), None),
        Err(reason) => (None, Some(reason)),
    };
    // 2. The start, and the counts before it.
    let commits = commit_counts::CommitCounts::read();
    let started_at = Instant::now();
    let mut around = around;
    let (started, notifier, no_gate) = match &shared {
        Some(shared) => start(command, settings, &around, shared)?,
        None => (
            supervise_command::start(command, supervise_command::StartConditions::default())?,
            None,
            None,
        ),
    };
    if let Some(begin) = around.started.take() {
        begin(started.id());
    }
    // 3. The wait, with looks at the command.
    let mut lookout =
        (shared.is_some() && around.reach == GateReach::Library).then(UnreachedSearch::new);
    let figures = shared.as_ref().map(|shared| shared.figures.counters);
    let interval: fn(Duration) -> Duration = match around.watch {
        Some(_) => supervise_command::close_look,
        None => |_| unreached_programs::INTERVAL,
    };
    let has_observers = around.watch.is_some() || lookout.is_some();
    let mut look = |process| {
        if let Some(watch) = &mut around.watch {
            watch(process, figures);
        }
        if let Some(lookout) = &mut lookout {
            lookout.look(process);
        }
    };
    let end = started.wait(
        has_observers.then_some(supervise_command::PeriodicLook { call: &mut look, interval }),
    )?;
    // 4. The figures.
    let ran = gated_run_outcome::FinishedRun {
        policy: settings.policy,
        end,
        elapsed: started_at.elapsed(),
        refused: no_share.or(no_gate),
        notified: notifier.map(RunningNotifier::end),
        unreached: lookout.map_or_else(Vec::new, UnreachedSearch::into_programs),
    };
    Ok(GatedRunOutcome::collect(shared.as_ref(), ran, &around.count_only, &commits))
}

/// Starts a command, and its notifier if that is to reach it. The text says why the gate does not reach it, if so.
fn start(
    command: &RunCommand,
    settings: &CallSettings,
    around: &RunSurroundings<'_>,
    shared: &run_memory::RunMemory,
) -> Result<(supervise_command::StartedCommand, Option<RunningNotifier>, Option<String>), LaunchError>
{
    if around.reach != GateReach::Library {
        let (started, notifier) =
            with_a_keeper(|| start_notified(command, settings, around, shared))?;
        return Ok(match notifier {
            Ok(notifier) => (started, Some(notifier), None),
            Err(error) => (started, None, Some(error.to_string())),
        });
    }
    let (mut environment, refused) = match preload_library::find() {
        Ok(library) => (shared.environment(&library, settings), None),
        // Without /proc this program does not know where it is.
        Err(LaunchError::System(error)) => (Vec::new(), Some(error.to_string())),
        Err(error) => return Err(error),
    };
    if !around.count_only.is_empty() {
        let devices = devices_to_text(&around.count_only);
        environment.push((COUNT_ONLY.into(), devices.into()));
    }
    let how = supervise_command::StartConditions {
        environment: &environment,
        ..supervise_command::StartConditions::default()
    };
    Ok((supervise_command::start(command, how)?, None, refused))
}

/// Opens the run's shared memory, or says why the run takes no part in the gate.
fn share(settings: &CallSettings) -> Result<run_memory::RunMemory, String> {
    if std::env::var_os(NOTIFIED).is_some() {
        return Err("the luc run above this one is notified of its calls already".to_owned());
    }
    run_memory::RunMemory::open(&settings.policy).map_err(|error| error.to_string())
}

/// Maximum number of starts of a command whose keeper is killed meanwhile.
const MAX_STARTS: u32 = 8;

/// A command that was started, and its notifier, or why it runs without one.
type NotifiedStart = (supervise_command::StartedCommand, Result<RunningNotifier, NotifyError>);

/// Starts a command by `start`, and again if its keeper was killed before it had the filter's listener. The command's
/// process has ended then without executing the program.
fn with_a_keeper(
    start: impl Fn() -> Result<NotifiedStart, LaunchError>,
) -> Result<NotifiedStart, LaunchError> {
    let is_killed = |error: &LaunchError| match error {
        LaunchError::System(failed) => failed.source.kind() == ErrorKind::BrokenPipe,
        _ => false,
    };
    let mut tries = 1;
    loop {
        match start() {
            Err(error) if is_killed(&error) && tries < MAX_STARTS => tries += 1,
            Err(LaunchError::System(mut failed))
                if failed.source.kind() == ErrorKind::BrokenPipe =>
            {
                // A broken pipe means to programs that the reader of their output has gone, which is no error.
                failed.source = std::io::Error::other(failed.source.to_string());
                return Err(LaunchError::System(failed));
            }
            tried => return tried,
        }
    }
}

/// Starts a command whose calls are notified, with a keeper of its own.
fn start_notified(
    command: &RunCommand,
    settings: &CallSettings,
    around: &RunSurroundings<'_>,
    shared: &run_memory::RunMemory,
) -> Result<NotifiedStart, LaunchError> {
    let is_required = around.reach == GateReach::Notifier;
    let work = NotifierWork {
        arena: shared.rounds,
        figures: shared.figures.counters,
        settings: *settings,
        count_only: around.count_only.clone(),
    };
    let blocked = supervise_command::BlockedSignals::new()?;
    let begun = PreparedNotifier::new(is_required)
        .and_then(|(prepared, installing)| Ok((prepared.begin(work)?, installing)));
    let (beginning, installing) = match begun {
        Ok(begun) => begun,
        Err(error) if is_required => return Err(error.into()),
        Err(error) => {
            let how = supervise_command::StartConditions {
                blocked: Some(blocked),
                ..supervise_command::StartConditions::default()
            };
            return Ok((supervise_command::start(command, how)?, Err(error)));
        }
    };
    // Where the library loads, too, it makes a call again that a signal ended before the supervisor received it.
    let loading = preload_library::find().map(|library| run_memory::loading(&library));
    let mut environment = vec![(NOTIFIED.into(), "1".into())];
    environment.extend(loading.into_iter().flatten());
    let how = supervise_command::StartConditions {
        environment: &environment,
        removed: &OF_LIBRARY,
        installing: Some(installing),
        blocked: Some(blocked),
    };
    let started = supervise_command::start(command, how);
    match (started, beginning.join()) {
        (Ok(started), notifier) => Ok((started, notifier)),
        (Err(_), Err(error @ (NotifyError::Taken | NotifyError::Refused(_)))) => Err(error.into()),
        (Err(error), notifier) => {
            if let Ok(notifier) = notifier {
                let _ = notifier.end();
            }
            Err(error)
        }
    }
}
