//! Ctrl-C, SIGTERM and SIGHUP as a flag, so that a run ends in order and leaves nothing behind.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// While this lives, the signals set a flag and do not end the process.
pub struct SignalGuard {
    previous: Vec<(libc::c_int, libc::sigaction)>,
}

impl std::fmt::Debug for SignalGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl SignalGuard {
    /// Takes over SIGINT, SIGTERM and SIGHUP until it is dropped. A signal that is ignored already (as under `nohup`)
    /// stays ignored. Forget it where the process is about to end with success.
    ///
    /// # Errors
    /// The system's, from `sigaction`.
    pub fn install() -> io::Result<Self> {
        let mut guard = Self { previous: Vec::new() };
        for signal in SIGNALS {
            // SAFETY: all-zero bytes are a valid `sigaction`; both pointers are to live locals.
            let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: a null new action only reads the current one into `old`.
            if unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut old) } != 0 {
                return Err(io::Error::last_os_error());
            }
            if old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            // SAFETY: as above.
            let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
            new.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
            new.sa_flags = libc::SA_RESTART;
            // SAFETY: `new` holds a handler that only stores to an atomic, which is async-signal-safe.
            if unsafe { libc::sigaction(signal, &raw const new, std::ptr::null_mut()) } != 0 {
                return Err(io::Error::last_os_error());
            }
            guard.previous.push((signal, old));
        }
        Ok(guard)
    }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        for (signal, previous) in &self.previous {
            // SAFETY: gives back the disposition that `install` got for the same signal.
            unsafe { libc::sigaction(*signal, previous, std::ptr::null_mut()) };
        }
    }
}

/// Takes the signals over like [`SignalGuard::install`], for the rest of the process's life.
///
/// # Errors
/// The system's, from `sigaction`.
pub fn install() -> io::Result<()> {
    SignalGuard::install().map(std::mem::forget)
}

/// Whether one of the signals has come while a [`SignalGuard`] lived.
#[must_use]
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

extern "C" fn note(_signal: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}
