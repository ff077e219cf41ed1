//! The first process of a container: it inherits orphans, and nobody else waits for their ends.

use std::io;
use std::mem::MaybeUninit;

use luc_units::OnPath as _;

use crate::LaunchError;
use crate::signals::{SignalInfo, await_children};

/// If this is the first process of its namespace, makes a child that goes on in its place.
///
/// Returns `None` in the child, and in any other process. The first process passes signals on to the child and reaps
/// orphans. It waits for the child's end, and returns the child's exit status.
///
/// Other threads would be missing in the child, so there may be none yet.
///
/// # Errors
/// [`LaunchError::System`]: no process can be made.
pub fn reap_for_child() -> Result<Option<u8>, LaunchError> {
    if std::process::id() != 1 {
        return Ok(None);
    }
    reap().map_err(LaunchError::io("start", "a process beside the container's first"))
}

fn reap() -> io::Result<Option<u8>> {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    await_children();
    // SAFETY: sigfillset initializes `all` before it is used, pthread_sigmask `before`; only this thread's mask
    // changes.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
    }
    // SAFETY: there is one thread, so the child has all that this process had.
    let child = unsafe { libc::fork() };
    if child <= 0 {
        let error = io::Error::last_os_error();
        // SAFETY: the mask that this thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
        return if child == 0 { Ok(None) } else { Err(error) };
    }
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: `all` is a set, and `info` has room for one signal.
        let signal = unsafe { libc::sigwaitinfo(all.as_ptr(), info.as_mut_ptr()) };
        if signal == libc::SIGCHLD {
            if let Some(status) = wait_for_ended(child) {
                return Ok(Some(status));
            }
        } else if signal > 0 {
            // SAFETY: filled by the successful call.
            let info = unsafe { info.assume_init() };
            SignalInfo::from(&info).pass_on(child);
        }
    }
}

/// Waits for all children that have ended. Returns the status of `child` if it is among them.
fn wait_for_ended(child: libc::pid_t) -> Option<u8> {
    let mut found = None;
    loop {
        let mut status = 0;
        // SAFETY: `status` is valid for writes.
        let process = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if process <= 0 {
            return found;
        }
        if process == child {
            found = Some(if libc::WIFSIGNALED(status) {
                128u8.saturating_add(libc::WTERMSIG(status) as u8)
            } else {
                libc::WEXITSTATUS(status) as u8
            });
        }
    }
}
