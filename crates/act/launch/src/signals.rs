//! Signals of a process that stands between a command and its starter: they are for the command.

use std::fs::File;
use std::io::{self, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::FromRawFd as _;

use libc::c_int;
use luc_units::OnPath as _;

use crate::LaunchError;

/// Signals that are not read from a file: those that a thread's own actions cause, and those that stop and continue.
const DELIVERED_SIGNALS: [c_int; 10] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCONT,
];

/// Signals that a terminal sends to whole process groups.
const TERMINAL_SIGNALS: [c_int; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGWINCH,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCONT,
];

/// Signals that the kernel sends for a process' own use of processors.
const PROCESSOR_SIGNALS: [c_int; 3] = [libc::SIGXCPU, libc::SIGVTALRM, libc::SIGPROF];

/// Signals that ask a process to end.
const STOP_SIGNALS: [c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// A signal that came to this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignalInfo {
    number: c_int,
    code: c_int,
    sender: libc::pid_t,
    /// The value that `sigqueue` gave it.
    value: usize,
}

impl From<&libc::signalfd_siginfo> for SignalInfo {
    fn from(info: &libc::signalfd_siginfo) -> Self {
        Self {
            number: info.ssi_signo as c_int,
            code: info.ssi_code,
            sender: info.ssi_pid as libc::pid_t,
            value: info.ssi_ptr as usize,
        }
    }
}

impl From<&libc::siginfo_t> for SignalInfo {
    fn from(info: &libc::siginfo_t) -> Self {
        // SAFETY: plain numbers of an initialized structure. Where the code says that they mean something else, they
        // are not used.
        let (sender, value) = unsafe { (info.si_pid(), info.si_value()) };
        Self { number: info.si_signo, code: info.si_code, sender, value: value.sival_ptr.addr() }
    }
}

impl SignalInfo {
    /// Sends the signal to `child`, if it is meant for the child and has not reached it already. The child must not
    /// have been waited for yet.
    pub(crate) fn pass_on(self, child: libc::pid_t) {
        let Some(target) = self.target(child) else {
            return;
        };
        let value = libc::sigval { sival_ptr: std::ptr::without_provenance_mut(self.value) };
        // SAFETY: plain numbers. The child has not been waited for, so its number, and its group's, is its own.
        unsafe {
            if self.code == libc::SI_QUEUE {
                libc::sigqueue(target, self.number, value);
            } else {
                libc::kill(target, self.number);
            }
        }
    }

    /// The process, or the negated process group, that it is for apart from this process.
    fn target(self, child: libc::pid_t) -> Option<libc::pid_t> {
        let of_kernel = self.code == libc::SI_KERNEL;
        let is_of_processors = of_kernel && PROCESSOR_SIGNALS.contains(&self.number);
        if self.number == libc::SIGCHLD || is_of_processors || self.is_own() {
            return None;
        }
        if !of_kernel || !TERMINAL_SIGNALS.contains(&self.number) {
            return Some(child);
        }
        // SAFETY: plain numbers.
        let (own_group, group, own, session, own_session) = unsafe {
            (
                libc::getpgrp(),
                libc::getpgid(child),
                libc::getpid(),
                libc::getsid(child),
                libc::getsid(0),
            )
        };
        // A terminal that goes is told to the session's leader alone.
        if self.number == libc::SIGHUP && own_session == own {
            return Some(child);
        }
        if group == own_group {
            return None;
        }
        // Without luc the terminal would know this group.
        let leads_group = group == child && session == own_session;
        Some(if leads_group { -child } else { child })
    }

    /// Whether this process raised it by a call of its own, such as a write to a pipe without readers.
    fn is_own(self) -> bool {
        // SAFETY: no arguments.
        self.code <= libc::SI_USER && self.sender == unsafe { libc::getpid() }
    }

    /// Its number, if it asks this process to end and is not ignored.
    pub(crate) fn stops(self) -> Option<c_int> {
        (STOP_SIGNALS.contains(&self.number) && !self.is_own() && !is_ignored(self.number))
            .then_some(self.number)
    }
}

/// Whether a signal is ignored by this process.
pub(crate) fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only reads the present action into `action`, for which zeros are valid already.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Makes this process notice the ends of children, also if it inherited an ignored SIGCHLD.
pub(crate) fn await_children() {
    if is_ignored(libc::SIGCHLD) {
        // SAFETY: the default action, and no handler.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
}

/// Signals that are read from a file instead of being delivered, until dropped.
pub struct BlockedSignals {
    file: File,
    before: libc::sigset_t,
}

impl BlockedSignals {
    /// Blocks the signals in this thread and in those that it starts from here on. Ends of children are kept from here
    /// on.
    ///
    /// # Errors
    /// [`LaunchError::System`]: there is no descriptor left.
    pub fn new() -> Result<Self, LaunchError> {
        await_children();
        Self::of_thread().map_err(LaunchError::io("block signals for", "the command"))
    }

    fn of_thread() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: `set` is valid for writes and initialized before signals are taken out.
        unsafe {
            libc::sigfillset(set.as_mut_ptr());
            for signal in DELIVERED_SIGNALS {
                libc::sigdelset(set.as_mut_ptr(), signal);
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
        let fd =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            set_mask(&before)?;
            return Err(error);
        }
        // SAFETY: just opened, and owned by nobody else.
        let file = unsafe { File::from_raw_fd(fd) };
        Ok(Self { file, before })
    }

    pub(crate) fn before(&self) -> libc::sigset_t {
        self.before
    }

    /// The file that the signals are read from.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Reads the next pending signal, if there is one.
    ///
    /// Never waits: what was pending a moment ago may have come to a thread that does not block it.
    pub(crate) fn next(&self) -> io::Result<Option<SignalInfo>> {
        let mut bytes = [0u8; size_of::<libc::signalfd_siginfo>()];
        match (&self.file).read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            read => read?,
        }
        // SAFETY: plain integers, for which all bytes are valid.
        let info: libc::signalfd_siginfo = unsafe { std::mem::transmute(bytes) };
        Ok(Some(SignalInfo::from(&info)))
    }
}

impl std::fmt::Debug for BlockedSignals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocked").finish_non_exhaustive()
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // It was valid before, so it is now.
        let _ = set_mask(&self.before);
    }
}

pub(crate) fn set_mask(mask: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: `mask` is a valid set.
    let result = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    fn cat(group: Option<i32>) -> Child {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped());
        if let Some(group) = group {
            command.process_group(group);
        }
        command.spawn().unwrap()
    }

    fn signal(number: c_int, code: c_int, sender: libc::pid_t) -> SignalInfo {
        SignalInfo { number, code, sender, value: 0 }
    }

    #[test]
    fn a_terminal_s_signal_is_for_a_command_of_another_group() {
        let (mut beside, mut apart) = (cat(None), cat(Some(0)));
        let ids = [&beside, &apart].map(|child| child.id() as libc::pid_t);
        for number in [libc::SIGINT, libc::SIGQUIT, libc::SIGWINCH] {
            let typed = signal(number, libc::SI_KERNEL, 0);
            assert_eq!(typed.target(ids[0]), None);
            assert_eq!(typed.target(ids[1]), Some(-ids[1]));
            let sent = signal(number, libc::SI_USER, 1);
            assert_eq!(ids.map(|id| sent.target(id)), ids.map(Some));
        }
        for child in [&mut beside, &mut apart] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn nothing_pending_is_not_waited_for() {
        let blocked = BlockedSignals::new().unwrap();
        assert!(blocked.next().unwrap().is_none());
        // SAFETY: plain numbers; this thread blocks the signal, which stays pending for it alone.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR1) };
        let found = blocked.next().unwrap().unwrap();
        assert_eq!((found.number, found.is_own()), (libc::SIGUSR1, true));
        assert!(blocked.next().unwrap().is_none());
    }

    #[test]
    fn signals_that_are_about_this_process_stay_with_it() {
        let mut child = cat(None);
        let id = child.id() as libc::pid_t;
        let own = std::process::id() as libc::pid_t;
        for stays in [
            signal(libc::SIGPIPE, libc::SI_USER, own),
            signal(libc::SIGTERM, libc::SI_TKILL, own),
            signal(libc::SIGXCPU, libc::SI_KERNEL, 0),
            signal(libc::SIGCHLD, libc::CLD_EXITED, id),
        ] {
            assert_eq!((stays.target(id), stays.stops()), (None, None), "{stays:?}");
        }
        for passes in [
            signal(libc::SIGPIPE, libc::SI_USER, 1),
            signal(libc::SIGALRM, libc::SI_KERNEL, 0),
            signal(libc::SIGRTMIN() + 3, libc::SI_QUEUE, own + 1),
        ] {
            assert_eq!(passes.target(id), Some(id), "{passes:?}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
