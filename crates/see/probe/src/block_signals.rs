//! Threads that leave signals to others.

use std::io;
use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that leaves all signals to the others. That is necessary beside a thread that waits for signals: a
/// signal that only the waiting thread blocks is delivered to any other, and ends the process.
///
/// The new thread inherits the mask of its creator, which blocks all signals meanwhile. If it blocked them itself, a
/// signal might hit it before.
///
/// # Errors
/// The system's, if there can be no more threads.
pub fn spawn_without_signals<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: sigfillset initializes `all` before it is used, pthread_sigmask `before`; only this thread's mask
    // changes.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
    }
    let thread = Builder::new().name(name.to_owned()).spawn(run);
    // SAFETY: `before` is this thread's mask as it was.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
    }
    thread
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the blocked signals of the running thread, as the kernel shows them.
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("readable");
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        u64::from_str_radix(line.expect("a mask").trim(), 16).expect("a number")
    }

    #[test]
    fn a_thread_has_no_signals_and_its_starter_the_same_as_before() {
        let before = blocked();
        let thread = spawn_without_signals("test", blocked).expect("a thread");
        let inside = thread.join().expect("no panic");
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            assert_ne!(inside >> (signal - 1) & 1, 0, "{signal}: {inside:x}");
        }
        assert_eq!(blocked(), before);
    }
}
