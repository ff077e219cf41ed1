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

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags};

use super::LaunchError;

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

/// Called again and again while a command runs, with its process number.
pub type Look<'a> = &'a mut dyn FnMut(u32);

/// How long a command is looked at often, since what it does first is to be seen early.
const EARLY: Duration = Duration::from_secs(1);
/// Time between two observations of a young command.
const EARLY_INTERVAL: Duration = Duration::from_millis(4);
/// Time between two later observations.
const LATER_INTERVAL: Duration = Duration::from_millis(20);

/// Runs `command` with `environment` added to this process' own, until it ends.
///
/// # Errors
///
/// [`LaunchError::System`] if it cannot be started.
pub fn run(
    command: &Command,
    environment: &[(OsString, OsString)],
    look: Option<Look<'_>>,
) -> Result<Ending, LaunchError> {
    let blocked = Blocked::new().map_err(LaunchError::system("block signals for", ""))?;
    let mask = blocked.before;
    let mut child = std::process::Command::new(&command.program);
    if let Some((name, arguments)) = command.arguments.split_first() {
        child.arg0(name).args(arguments);
    }
    child.envs(environment.iter().map(|(name, value)| (name, value)));
    if command.discard_output {
        child.stdout(Stdio::null());
    }
    // SAFETY: the closure only makes one async-signal-safe call.
    unsafe {
        child.pre_exec(move || set_mask(&mask));
    }
    let mut child = child
        .spawn()
        .map_err(LaunchError::system("start", &command.program))?;
    wait(&mut child, &blocked.file, look).map_err(LaunchError::system("wait for", &command.program))
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
        let interval = if started.elapsed() < EARLY {
            EARLY_INTERVAL
        } else {
            LATER_INTERVAL
        };
        let timeout = look
            .is_some()
            .then(|| Timespec::try_from(interval).ok())
            .flatten();
        match poll(&mut events, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        if events[0].revents().contains(PollFlags::IN) {
            let status = child.wait()?;
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
            look(child.id());
        }
    }
}

fn pass_on(child: Pid, mut signals: &File) -> io::Result<()> {
    let mut bytes = [0u8; size_of::<libc::signalfd_siginfo>()];
    signals.read_exact(&mut bytes)?;
    // SAFETY: plain integers, for which all bytes are valid.
    let info: libc::signalfd_siginfo = unsafe { std::mem::transmute(bytes) };
    // The terminal sends its signals to the command as well.
    if info.ssi_code != libc::SI_KERNEL {
        // SAFETY: the child has not been waited for, so its number is still its own.
        unsafe { libc::kill(child.as_raw_pid(), info.ssi_signo as i32) };
    }
    Ok(())
}

/// The signals that are read from a file instead of being delivered, until dropped.
struct Blocked {
    file: File,
    before: libc::sigset_t,
}

impl Blocked {
    fn new() -> io::Result<Self> {
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

    #[test]
    fn the_exit_status_is_passed_through() {
        assert_eq!(run(&shell("exit 7"), &[], None).unwrap(), Ending::Exited(7));
    }

    #[test]
    fn a_command_is_looked_at_while_it_runs() {
        let mut looks = Vec::new();
        let mut look = |process| looks.push(process);
        run(&shell("sleep 0.1; exit 7"), &[], Some(&mut look)).unwrap();
        assert!(!looks.is_empty() && looks.iter().all(|process| *process == looks[0]));
    }

    #[test]
    fn a_deadly_signal_is_told() {
        let ending = run(&shell("kill -TERM $$"), &[], None).unwrap();
        assert_eq!(
            ending,
            Ending::Killed {
                signal: libc::SIGTERM
            }
        );
        assert_eq!(ending.exit_status(), 143);
    }

    #[test]
    fn the_environment_is_added() {
        let environment = [("LUC_TEST_VALUE".into(), "yes".into())];
        let ending = run(&shell("test \"$LUC_TEST_VALUE\" = yes"), &environment, None).unwrap();
        assert_eq!(ending, Ending::Exited(0));
    }
}
