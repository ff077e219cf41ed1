//! Starts a command, passes signals on to it, and waits for its end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::FromRawFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use luc_notify::child::Installing;
use luc_units::OnPath as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags};

use crate::LaunchError;

/// A command, already resolved to a program.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program's path.
    pub program: PathBuf,
    /// Its argument zero and the other arguments.
    pub arguments: Vec<OsString>,
    /// Whether its standard output is thrown away.
    pub discard_output: bool,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It exited with this status.
    Exited(u8),
    /// A signal ended it.
    Killed {
        /// The signal's number.
        signal: i32,
    },
}

impl Ending {
    /// The exit status that stands for it, as a shell reports it: 128 + signal if one ended it.
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Exited(status) => status,
            Self::Killed { signal } => 128u8.saturating_add(u8::try_from(signal).unwrap_or(127)),
        }
    }

    /// Whether a signal ended it, also one that it caught to clear up first: SIGHUP, SIGINT or SIGTERM, as its exit status
    /// says by the shell's convention.
    pub fn is_by_signal(self) -> bool {
        let asked = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM].map(|signal| 128 + signal);
        match self {
            Self::Exited(status) => asked.contains(&i32::from(status)),
            Self::Killed { .. } => true,
        }
    }
}

/// Signals that are passed on to the command. Those that stop and continue are left to the terminal.
const PASSED_ON: [i32; 7] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
];

/// Observes a command while it runs.
pub struct Look<'a> {
    /// Called again and again with the command's process number.
    pub call: &'a mut dyn FnMut(u32),
    /// Time between two calls, by how long the command has run.
    pub interval: fn(Duration) -> Duration,
}

/// Time between two looks for whom every call counts: what a command does first is to be seen early.
pub(super) fn close_look(elapsed: Duration) -> Duration {
    if elapsed < Duration::from_secs(1) {
        Duration::from_millis(4)
    } else {
        Duration::from_millis(20)
    }
}

/// What a command is started with.
#[derive(Debug, Default)]
pub struct Start<'a> {
    /// Added to this process' environment.
    pub environment: &'a [(OsString, OsString)],
    /// Taken out of it.
    pub removed: &'a [&'static str],
    /// What its process does before it executes the program.
    pub installing: Option<Installing>,
    /// Blocked before, where threads run by now that leave this process' signals alone.
    pub blocked: Option<Blocked>,
}

/// A command that has been started.
#[derive(Debug)]
pub struct Started {
    child: Child,
    program: PathBuf,
    blocked: Blocked,
}

/// Starts `command`. From here on this process' signals are passed on to it; threads that are started now leave them
/// alone.
///
/// # Errors
///
/// [`LaunchError::System`] if it cannot be started.
pub fn start(command: &Command, how: Start<'_>) -> Result<Started, LaunchError> {
    let blocked = match how.blocked {
        Some(blocked) => blocked,
        None => Blocked::new()?,
    };
    let mask = blocked.before;
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
    // SAFETY: the closure only makes async-signal-safe calls.
    unsafe {
        child.pre_exec(move || {
            set_mask(&mask)?;
            installing.as_mut().map_or(Ok(()), Installing::install)
        });
    }
    let child = child
        .spawn()
        .map_err(LaunchError::io("start", &command.program))?;
    Ok(Started {
        child,
        program: command.program.clone(),
        blocked,
    })
}

impl Started {
    /// Number of its process, which stays its own until [`wait`](Self::wait) returns.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the command's end.
    ///
    /// # Errors
    ///
    /// [`LaunchError::System`] if it cannot be waited for.
    pub fn wait(mut self, look: Option<Look<'_>>) -> Result<Ending, LaunchError> {
        wait(&mut self.child, &self.blocked.file, look)
            .map_err(LaunchError::io("wait for", &self.program))
    }
}

fn wait(child: &mut Child, signals: &File, mut look: Option<Look<'_>>) -> io::Result<Ending> {
    let started = Instant::now();
    let id = Pid::from_child(child);
    // Unlike SIGCHLD it cannot get lost to another thread.
    let ended = rustix::process::pidfd_open(id, PidfdFlags::empty())?;
    loop {
        let mut events = [
            PollFd::new(&ended, PollFlags::IN),
            PollFd::new(signals, PollFlags::IN),
        ];
        let interval = look.as_ref().map(|look| (look.interval)(started.elapsed()));
        let timeout = interval.and_then(|interval| Timespec::try_from(interval).ok());
        match poll(&mut events, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        if events[0].revents().contains(PollFlags::IN) {
            let status = child.wait()?;
            // What came before this was noticed was for the command: it ends nobody else now.
            while is_there(signals)? {
                read(signals)?;
            }
            return Ok(match (status.code(), status.signal()) {
                (Some(code), _) => Ending::Exited(code as u8),
                (None, signal) => Ending::Killed {
                    signal: signal.unwrap_or(0),
                },
            });
        }
        if events[1].revents().contains(PollFlags::IN) {
            pass_on(id, signals)?;
        }
        if let Some(look) = &mut look {
            (look.call)(child.id());
        }
    }
}

/// Whether a signal waits to be read.
fn is_there(signals: &File) -> io::Result<bool> {
    let mut events = [PollFd::new(signals, PollFlags::IN)];
    Ok(poll(&mut events, Some(&Timespec::default()))? > 0)
}

fn read(mut signals: &File) -> io::Result<libc::signalfd_siginfo> {
    let mut bytes = [0u8; size_of::<libc::signalfd_siginfo>()];
    signals.read_exact(&mut bytes)?;
    // SAFETY: plain integers, for which all bytes are valid.
    let info: libc::signalfd_siginfo = unsafe { std::mem::transmute(bytes) };
    Ok(info)
}

fn pass_on(child: Pid, signals: &File) -> io::Result<()> {
    let info = read(signals)?;
    // The terminal sends its signals to the command as well.
    if info.ssi_code != libc::SI_KERNEL {
        // SAFETY: the child has not been waited for, so its number is still its own.
        unsafe { libc::kill(child.as_raw_pid(), info.ssi_signo as i32) };
    }
    Ok(())
}

impl std::fmt::Debug for Look<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Look").finish_non_exhaustive()
    }
}

/// The signals that are read from a file instead of being delivered, until dropped.
pub struct Blocked {
    file: File,
    before: libc::sigset_t,
}

impl Blocked {
    /// Blocks them in this thread, and in those that it starts from here on.
    ///
    /// # Errors
    ///
    /// [`LaunchError::System`] if there is no descriptor left.
    pub fn new() -> Result<Self, LaunchError> {
        Self::of_thread().map_err(LaunchError::io("block signals for", "the command"))
    }

    fn of_thread() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: `set` is valid for writes and initialized before signals are added.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in PASSED_ON {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
        }
        // SAFETY: initialized just above.
        let set = unsafe { set.assume_init() };
        // SAFETY: both sets are valid.
        let result =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, before.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::from_raw_os_error(result));
        }
        // SAFETY: written by the successful call.
        let before = unsafe { before.assume_init() };
        // SAFETY: `set` is valid.
        let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            set_mask(&before)?;
            return Err(error);
        }
        // SAFETY: just opened, and owned by nobody else.
        let file = unsafe { File::from_raw_fd(fd) };
        Ok(Self { file, before })
    }
}

impl std::fmt::Debug for Blocked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocked").finish_non_exhaustive()
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // It was valid before, so it is now.
        let _ = set_mask(&self.before);
    }
}

fn set_mask(mask: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: `mask` is a valid set.
    let result = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        Command {
            program: "/bin/sh".into(),
            arguments: ["sh", "-c", script].map(OsString::from).to_vec(),
            discard_output: true,
        }
    }

    fn run(script: &str, how: Start<'_>) -> Ending {
        start(&shell(script), how).unwrap().wait(None).unwrap()
    }

    #[test]
    fn the_exit_status_is_passed_through() {
        assert_eq!(run("exit 7", Start::default()), Ending::Exited(7));
    }

    #[test]
    fn a_command_is_looked_at_while_it_runs() {
        let mut looks = Vec::new();
        let mut look = |process| looks.push(process);
        let started = start(&shell("sleep 0.1; exit 7"), Start::default()).unwrap();
        let looking = Look {
            call: &mut look,
            interval: close_look,
        };
        started.wait(Some(looking)).unwrap();
        assert!(!looks.is_empty() && looks.iter().all(|process| *process == looks[0]));
    }

    #[test]
    fn a_deadly_signal_is_told() {
        let ending = run("kill -TERM $$", Start::default());
        assert_eq!(
            ending,
            Ending::Killed {
                signal: libc::SIGTERM
            }
        );
        assert_eq!(ending.exit_status(), 143);
        assert!(ending.is_by_signal());
    }

    #[test]
    fn a_signal_that_is_caught_is_told_by_the_status() {
        let ending = run("trap 'exit 130' INT; kill -INT $$", Start::default());
        assert_eq!(ending, Ending::Exited(130));
        assert!(ending.is_by_signal());
        assert!(!Ending::Exited(7).is_by_signal());
    }

    #[test]
    fn the_environment_is_added_to_and_taken_from() {
        let environment = [("LUC_TEST_VALUE".into(), "yes".into())];
        let how = Start {
            environment: &environment,
            removed: &["HOME"],
            ..Start::default()
        };
        let script = "test \"$LUC_TEST_VALUE\" = yes && test -z \"$HOME\"";
        assert_eq!(run(script, how), Ending::Exited(0));
    }
}
