//! A timer that one thread waits for and any thread can set, without waking the waiter to set it.
//!
//! It is a timerfd: setting it is one system call that arms a high-resolution timer (timer slack does not apply).
//! Waking a sleeping thread so that it sleeps shorter would be two context switches.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// Descriptor of a timerfd that one thread waits for.
#[derive(Debug)]
pub(crate) struct TimerFd(OwnedFd);

impl TimerFd {
    /// Makes a timer that is not set.
    ///
    /// # Errors
    /// No descriptor is free.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?))
    }

    /// Sets it to expire at `at_ns`, or now if that is past. Replaces an earlier setting.
    ///
    /// # Errors
    /// None that a correct call can meet; passed on rather than assumed.
    pub(crate) fn arm(&self, at_ns: u64) -> io::Result<()> {
        let at_ns = at_ns.max(1); // zero would disarm it
        let it_value = Timespec {
            tv_sec: (at_ns / 1_000_000_000) as i64,
            tv_nsec: (at_ns % 1_000_000_000) as _,
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(
            &self.0,
            TimerfdTimerFlags::ABSTIME,
            &Itimerspec { it_interval, it_value },
        )?;
        Ok(())
    }

    /// Waits until it has expired since the last wait.
    ///
    /// # Errors
    /// The descriptor cannot be read.
    pub(crate) fn wait(&self) -> io::Result<()> {
        let mut expirations = [0u8; 8];
        loop {
            match rustix::io::read(&self.0, &mut expirations) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
