//! SIGINT and SIGTERM as a request to stop at the next safe point.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// While this lives, SIGINT and SIGTERM do not kill the process: [`crate::create`] notices them,
/// takes back what it has made and returns [`crate::Error::Interrupted`].
#[derive(Debug)]
pub struct Guard {
    previous: [(libc::c_int, libc::sighandler_t); 2],
}

extern "C" fn note(_signal: libc::c_int) {
    REQUESTED.store(true, Ordering::Relaxed);
}

impl Guard {
    /// Takes over both signals until it is dropped. Forget it where the process is about to end with success.
    pub fn install() -> Self {
        let handler = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
        let previous = [libc::SIGINT, libc::SIGTERM].map(|signal| {
            // SAFETY: the handler only stores to an atomic, which is async-signal-safe, and
            // `signal` is a valid signal number.
            (signal, unsafe { libc::signal(signal, handler) })
        });
        Self { previous }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        for (signal, previous) in self.previous {
            // SAFETY: gives back the disposition that `install` got for the same signal.
            unsafe { libc::signal(signal, previous) };
        }
    }
}

/// Whether one of them arrived while a [`Guard`] lived.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
