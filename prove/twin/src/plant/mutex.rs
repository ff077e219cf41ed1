//! A mutex of the C library: its word in memory names its owner, unlike a standard library's.

use std::cell::UnsafeCell;
use std::fmt;
use std::io;

use luc_twin_truth::WorkKind;

use crate::clock::now_ns;
use crate::error::TwinError;
use crate::log::Recorder;

/// A lock without data.
pub(super) struct Mutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a pthread mutex may be locked by any thread that has its address, which does not change in its box.
unsafe impl Sync for Mutex {}
// SAFETY: as above.
unsafe impl Send for Mutex {}

impl fmt::Debug for Mutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

/// Holds a [`Mutex`] while it lives, in the thread that took it.
#[derive(Debug)]
pub(super) struct Held<'a> {
    mutex: &'a Mutex,
    /// Makes the guard `!Send`.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Mutex {
    pub(super) fn new() -> Self {
        Self(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)))
    }

    /// Waits until the mutex is free.
    pub(super) fn lock(&self) -> Result<Held<'_>, TwinError> {
        // SAFETY: the mutex is initialized, and lives as long as `self`.
        let result = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        if result != 0 {
            let error = io::Error::from_raw_os_error(result);
            return Err(TwinError::system("locking a mutex")(error));
        }
        Ok(Held { mutex: self, _thread: std::marker::PhantomData })
    }
}

impl Mutex {
    /// Takes the mutex for a moment on behalf of a request. Records the wait if it was held.
    pub(super) fn pass(&self, request: u64, recorder: &Recorder) -> Result<(), TwinError> {
        // SAFETY: the mutex is initialized, and lives as long as `self`.
        if unsafe { libc::pthread_mutex_trylock(self.0.get()) } == 0 {
            // SAFETY: this thread has just locked it.
            unsafe { libc::pthread_mutex_unlock(self.0.get()) };
            return Ok(());
        }
        let from_ns = now_ns();
        drop(self.lock()?);
        recorder.work(request, WorkKind::Planted, [from_ns, now_ns()]);
        Ok(())
    }
}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: nobody holds it: who does has a reference.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread has locked it, and only this value unlocks it.
        unsafe { libc::pthread_mutex_unlock(self.mutex.0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn one_at_a_time() {
        let mutex = Mutex::new();
        let count = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let _held = mutex.lock().expect("locked");
                        // Two calls: without the lock some would be lost.
                        let before = count.load(Ordering::Relaxed);
                        count.store(before + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 40_000);
    }
}
