//! Starts a command, passes signals on to it, and waits for its end.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use luc_gate::inspect::{self, InspectError};
use luc_notify::filter_installation::FilterInstallation;
use luc_units::OnPath as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags};

use crate::LaunchError;
use crate::inherited_state::InheritedState;
pub use crate::signals::BlockedSignals;
use crate::signals::set_mask;

/// A command, already resolved to a program.
#[derive(Clone, Debug)]
pub struct RunCommand {
    pub program: PathBuf,
    /// Argument zero and the other arguments.
    pub arguments: Vec<OsString>,
    /// Whether its standard output is thrown away.
    pub discard_output: bool,
}

impl RunCommand {
    /// Finds the program of a command line as a shell does.
    ///
    /// # Errors
    /// [`InspectError`]: there is none, or it may not be executed.
    pub fn resolve(words: &[OsString], discard_output: bool) -> Result<Self, InspectError> {
        let name = words.first().cloned().unwrap_or_default();
        // Only relative names need it, and the kernel knows them without its path.
        let directory = std::env::current_dir().unwrap_or_default();
        let path = std::env::var_os("PATH");
        Ok(Self {
            program: inspect::resolve(&name, path.as_deref(), &directory)?,
            arguments: words.to_vec(),
            discard_output,
        })
    }
}

/// End of a command: its exit status, or the signal that killed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEnding {
    Exited(u8),
    Killed { signal: i32 },
}

impl CommandEnding {
    /// The exit status that a shell reports for it: 128 + signal if one ended it.
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Exited(status) => status,
            Self::Killed { signal } => 128u8.saturating_add(u8::try_from(signal).unwrap_or(127)),
        }
    }

    /// Whether a signal ended it. That includes a SIGHUP, SIGINT or SIGTERM that it caught to clean up first. Its
    /// exit status must then be 128 + the signal, the shell's convention.
    pub fn is_by_signal(self) -> bool {
        let asked = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM].map(|signal| 128 + signal);
        match self {
            Self::Exited(status) => asked.contains(&i32::from(status)),
            Self::Killed { .. } => true,
        }
    }
}

/// End of a command, and whether this process was asked to end meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    pub ending: CommandEnding,
    /// Last signal that asked this process to end; it is passed on to the command.
    pub stop_signal: Option<i32>,
}

/// Interval between two checks for a command's end, where the kernel refuses a pidfd.
const WAIT_INTERVAL: Duration = Duration::from_millis(100);

/// Observes a command while it runs.
pub struct PeriodicLook<'a> {
    /// Called again and again with the command's process number.
    pub call: &'a mut dyn FnMut(u32),
    /// Time between two calls, by the time that the command has run.
    pub interval: fn(Duration) -> Duration,
}

/// Time between two looks for observers that need every call: they have to see a command's first calls early.
pub(super) fn close_look(elapsed: Duration) -> Duration {
    if elapsed < Duration::from_secs(1) {
        Duration::from_millis(4)
    } else {
        Duration::from_millis(20)
    }
}

/// Conditions of a command's start.
#[derive(Debug, Default)]
pub struct StartConditions<'a> {
    /// Variables that are added to this process' environment.
    pub environment: &'a [(OsString, OsString)],
    /// Variables that are removed from it.
    pub removed: &'a [&'static str],
    /// Installation of the filter in its process, before that executes the program.
    pub installing: Option<FilterInstallation>,
    /// Signals that were blocked before threads were started that must leave them alone.
    pub blocked: Option<BlockedSignals>,
}

/// A command that runs, and the signals that are blocked for it.
#[derive(Debug)]
pub struct StartedCommand {
    child: Child,
    program: PathBuf,
    blocked: BlockedSignals,
}

/// Starts `command`. From here on this process' signals are passed on to it, and threads that are started leave them
/// alone.
///
/// # Errors
/// [`LaunchError::System`]: it cannot be started.
pub fn start(
    command: &RunCommand,
    how: StartConditions<'_>,
) -> Result<StartedCommand, LaunchError> {
    let blocked = match how.blocked {
        Some(blocked) => blocked,
        None => BlockedSignals::new()?,
    };
    let mask = blocked.before();
    let inherited = InheritedState::at_start();
    let mut child = std::process::Command::new(&command.program);
    if let Some((name, arguments)) = command.arguments.split_first() {
        child.arg0(name).args(arguments);
    }
    for name in how.removed {
        child.env_remove(name);
    }
    child.envs(how.environment.iter().map(|(name, value)| (name, value)));
    if command.discard_output {
        child.stdout(Stdio::null());
    }
    let mut installing = how.installing;
    let replaced = command.discard_output.then_some(libc::STDOUT_FILENO);
    // SAFETY: the closure only makes async-signal-safe calls.
    unsafe {
        child.pre_exec(move || {
            set_mask(&mask)?;
            installing.as_mut().map_or(Ok(()), FilterInstallation::install)?;
            inherited.restore(replaced);
            Ok(())
        });
    }
    let child = child.spawn().map_err(LaunchError::io("start", &command.program))?;
    Ok(StartedCommand { child, program: command.program.clone(), blocked })
}

impl StartedCommand {
    /// Number of its process. No other process gets it until [`wait`](Self::wait) returns.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the command's end.
    ///
    /// # Errors
    /// [`LaunchError::System`]: it cannot be waited for.
    pub fn wait(mut self, look: Option<PeriodicLook<'_>>) -> Result<CommandEnd, LaunchError> {
        wait(&mut self.child, &self.blocked, look)
            .map_err(LaunchError::io("wait for", &self.program))
    }
}

fn wait(
    child: &mut Child,
    signals: &BlockedSignals,
    mut look: Option<PeriodicLook<'_>>,
) -> io::Result<CommandEnd> {
    let started = Instant::now();
    let id = Pid::from_child(child);
    // Unlike SIGCHLD it cannot get lost to another thread. Some filters of system calls refuse it.
    let ended = rustix::process::pidfd_open(id, PidfdFlags::empty()).ok();
    let mut stop_signal = None;
    loop {
        let of_child = ended.as_ref().map_or(signals.file().as_fd(), |ended| ended.as_fd());
        let mut events = [
            PollFd::from_borrowed_fd(of_child, PollFlags::IN),
            PollFd::new(signals.file(), PollFlags::IN),
        ];
        let for_look = look.as_ref().map(|look| (look.interval)(started.elapsed()));
        let for_end = ended.is_none().then_some(WAIT_INTERVAL);
        let interval = for_look.into_iter().chain(for_end).min();
        let timeout = interval.and_then(|interval| Timespec::try_from(interval).ok());
        match poll(&mut events, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        let status = match &ended {
            Some(_) if events[0].revents().contains(PollFlags::IN) => Some(child.wait()?),
            Some(_) => None,
            None => child.try_wait()?,
        };
        if let Some(status) = status {
            // What came before this was noticed was for the command: it ends nobody else now.
            while let Ok(Some(signal)) = signals.next() {
                stop_signal = signal.stops().or(stop_signal);
            }
            return Ok(CommandEnd { ending: status.into(), stop_signal });
        }
        if let Ok(Some(signal)) = signals.next() {
            stop_signal = signal.stops().or(stop_signal);
            signal.pass_on(id.as_raw_pid());
        }
        if let Some(look) = &mut look {
            (look.call)(child.id());
        }
    }
}

impl From<ExitStatus> for CommandEnding {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code as u8),
            (None, signal) => Self::Killed { signal: signal.unwrap_or(0) },
        }
    }
}

impl std::fmt::Debug for PeriodicLook<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Look").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> RunCommand {
        RunCommand {
            program: "/bin/sh".into(),
            arguments: ["sh", "-c", script].map(OsString::from).to_vec(),
            discard_output: true,
        }
    }

    fn run(script: &str, how: StartConditions<'_>) -> CommandEnding {
        let end = start(&shell(script), how).unwrap().wait(None).unwrap();
        end.ending
    }

    #[test]
    fn the_exit_status_is_passed_through() {
        assert_eq!(run("exit 7", StartConditions::default()), CommandEnding::Exited(7));
    }

    #[test]
    fn a_command_is_looked_at_while_it_runs() {
        let mut looks = Vec::new();
        let mut look = |process| looks.push(process);
        let started = start(&shell("sleep 0.1; exit 7"), StartConditions::default()).unwrap();
        let looking = PeriodicLook { call: &mut look, interval: close_look };
        started.wait(Some(looking)).unwrap();
        assert!(!looks.is_empty() && looks.iter().all(|process| *process == looks[0]));
    }

    #[test]
    fn a_deadly_signal_is_told() {
        let ending = run("kill -TERM $$", StartConditions::default());
        assert_eq!(ending, CommandEnding::Killed { signal: libc::SIGTERM });
        assert_eq!(ending.exit_status(), 143);
        assert!(ending.is_by_signal());
    }

    #[test]
    fn a_signal_that_is_caught_is_told_by_the_status() {
        let ending = run("trap 'exit 130' INT; kill -INT $$", StartConditions::default());
        assert_eq!(ending, CommandEnding::Exited(130));
        assert!(ending.is_by_signal());
        assert!(!CommandEnding::Exited(7).is_by_signal());
    }

    #[test]
    fn the_environment_is_added_to_and_taken_from() {
        let environment = [("LUC_TEST_VALUE".into(), "yes".into())];
        let how = StartConditions {
            environment: &environment,
            removed: &["HOME"],
            ..StartConditions::default()
        };
        let script = "test \"$LUC_TEST_VALUE\" = yes && test -z \"$HOME\"";
        assert_eq!(run(script, how), CommandEnding::Exited(0));
    }
}
