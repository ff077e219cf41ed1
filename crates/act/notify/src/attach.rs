//! Puts a running process under the filter: one of its threads is stopped for a moment and installs the filter for all
//! of them (`SECCOMP_FILTER_FLAG_TSYNC`). There is no way back: a filter stays until its processes have ended.
//!
//! - `stopped_thread`: a stopped thread.

mod error;
mod forked_work;
mod stopped_thread;

use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::call_ledger::MappedLedger;
use crate::keeper_process::{KeeperProcess, ListenerSource, relieve};
use crate::seccomp_unotify::{self, FLAGS, ListenerState};
use crate::{available, pass_descriptor, seccomp_filter};
pub use error::AttachError;
pub use forked_work::apart;
use luc_gate::seccomp_filter::filters_of;
use luc_gate::writeback_errors;
use stopped_thread::StoppedThread;

/// A process under the filter. When this is dropped, a keeper lets all of its calls pass.
#[derive(Debug)]
pub struct AttachedProcess {
    listener: OwnedFd,
    keeping: Keeping,
}

/// A keeper that waits for a listener, or has it.
#[derive(Debug)]
struct Keeping {
    keeper: KeeperProcess,
    ledger: Arc<MappedLedger>,
    /// Socket by which it gets the listener.
    giving: UnixStream,
    /// Closed with this process: the keeper then knows that it is alone.
    _control: UnixStream,
}

/// Puts a process under the filter, with all of its threads; its present children stay as they are.
///
/// Where the kernel demands it and `no_new_privs` allows it, the process loses the chance to gain privileges. To be
/// called [`apart`]: this process must not end in between.
///
/// # Errors
/// [`AttachError`]; the process goes on as it was, but for `no_new_privs`.
pub fn attach(process: u32, no_new_privs: bool) -> Result<AttachedProcess, AttachError> {
    available().map_err(|_| AttachError::Kernel)?;
    let number = i32::try_from(process).unwrap_or(0);
    match filters_of(process) {
        None => return Err(AttachError::Gone(number)),
        Some(0) => {}
        Some(_) => return Err(AttachError::Filtered(number)),
    }
    let pid = Pid::from_raw(number).ok_or(AttachError::Gone(number))?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty())
        .map_err(|errno| AttachError::denied(number, &errno.into()))?;
    // Asked before anything is changed: a listener that cannot be had would leave every call without an answer.
    match fetch(&pidfd, -1) {
        Err(Errno::BADF) | Ok(_) => {}
        Err(errno) => return Err(AttachError::denied(number, &errno.into())),
    }
    let keeping = Keeping::start().map_err(|error| AttachError::NoKeeper(number, error))?;
    let tracee = StoppedThread::stop(number)?;
    let installed = install(&tracee, &pidfd, number, no_new_privs);
    // Before the process makes a call.
    let kept = installed.inspect(|listener| keeping.give(listener));
    tracee.go_on()?;
    kept.map(|listener| AttachedProcess { listener, keeping })
}

impl AttachedProcess {
    #[must_use]
    pub fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// Whether the process, and all below it, has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        seccomp_unotify::is_waiting(self.listener.as_raw_fd(), 0) == ListenerState::NobodyLeft
    }

    /// Ends the keeper, because somebody else answers the process' calls now.
    pub fn is_served(self) {
        let Self { listener, keeping } = self;
        let keeper = keeping.keeper.id().unsigned_abs();
        relieve(&keeping.ledger, keeper, listener.as_raw_fd());
        keeping.keeper.reap();
    }
}

impl Keeping {
    /// Starts a keeper, which ends if it is given no listener.
    fn start() -> std::io::Result<Self> {
        let ledger = Arc::new(MappedLedger::new()?);
        let (giving, of_giving) = UnixStream::pair()?;
        let (control, of_control) = UnixStream::pair()?;
        let source = ListenerSource::Child(of_giving.as_fd());
        let keeper = KeeperProcess::start(&ledger, of_control.as_fd(), source)?;
        Ok(Self { keeper, ledger, giving, _control: control })
    }

    /// Gives the keeper the listener, and waits until it has it.
    fn give(&self, listener: &OwnedFd) {
        let socket = self.giving.as_raw_fd();
        // A keeper that was killed meanwhile is one guard less.
        let _ = pass_descriptor::send(socket, 0, Some(listener.as_raw_fd()));
        let _ = pass_descriptor::receive(socket);
    }
}

/// Makes the stopped thread install the filter.
fn install(
    tracee: &StoppedThread,
    pidfd: &OwnedFd,
    process: i32,
    no_new_privs: bool,
) -> Result<OwnedFd, AttachError> {
    const BYTES: u64 = 4096;
    /// Offset of the instructions in it.
    const PROGRAM: u64 = 64;
    let refused = |errno| AttachError::Refused { process, errno };
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let map = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    let page = tracee.call(libc::SYS_mmap, [0, BYTES, prot, map, u64::MAX, 0])?;
    let page = page.map_err(refused)?;
    let program = seccomp_filter::program();
    let mut bytes = Vec::new();
    // `struct sock_fprog`: a length, padding, an address.
    bytes.extend((program.len() as u64).to_ne_bytes());
    bytes.extend((page + PROGRAM).to_ne_bytes());
    bytes.resize(PROGRAM as usize, 0);
    for instruction in &program {
        bytes.extend(instruction.code.to_ne_bytes());
        bytes.extend([instruction.jt, instruction.jf]);
        bytes.extend(instruction.k.to_ne_bytes());
    }
    let written = tracee.write(page, &bytes);
    let flags = FLAGS | libc::SECCOMP_FILTER_FLAG_TSYNC | libc::SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    let mode = u64::from(libc::SECCOMP_SET_MODE_FILTER);
    let set = [mode, flags, page, 0, 0, 0];
    let set = || tracee.call(libc::SYS_seccomp, set);
    let result = match written {
        Err(error) => Err(AttachError::denied(process, &error)),
        Ok(()) => match set()? {
            Err(Errno::ACCESS) if no_new_privs => {
                let forbid = [libc::PR_SET_NO_NEW_PRIVS as u64, 1, 0, 0, 0, 0];
                tracee.call(libc::SYS_prctl, forbid)?.map_err(refused)?;
                set()?.map_err(refused)
            }
            Err(Errno::ACCESS) => Err(AttachError::Privileges(process)),
            result => result.map_err(refused),
        },
    };
    let fetched = result.and_then(|listener| {
        let number = listener as i32;
        let fetched = fetch(pidfd, number).map_err(refused)?;
        // Its own copy is of no use to it. Should that stay, nothing is lost.
        let _ = tracee.call(libc::SYS_close, [listener, 0, 0, 0, 0, 0]);
        Ok(fetched)
    });
    let _ = tracee.call(libc::SYS_munmap, [page, BYTES, 0, 0, 0, 0]);
    fetched
}

/// Takes over a descriptor of a process.
fn fetch(pidfd: &OwnedFd, number: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: plain numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), number, 0) };
    match i32::try_from(fd) {
        // SAFETY: just opened, and owned by nobody else.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(Errno::from_raw_os_error(writeback_errors::errno())),
    }
}
