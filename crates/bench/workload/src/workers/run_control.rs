//! Words shared by clients and coordinator: start, measured interval, end.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::thread::futex::{self, Timespec};

use super::clock::now_ns;
use crate::shared_memory::SharedSlice;

/// A client's failure: which operation, and errno.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientFault {
    pub operation: usize,
    pub errno: i32,
}

impl ClientFault {
    /// Builds the failure of `operation`.
    pub fn of(operation: usize) -> impl Fn(io::Error) -> Self {
        move |error| Self { operation, errno: error.raw_os_error().unwrap_or(libc::EIO) }
    }
}

/// Words that the clients and the coordinator share.
#[derive(Debug)]
pub(super) struct RunControl(SharedSlice<AtomicU64>, SharedSlice<AtomicU32>);

impl RunControl {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(SharedSlice::new(3)?, SharedSlice::new(3)?))
    }
    pub(super) fn begin_ns(&self) -> &AtomicU64 {
        &self.0[0]
    }
    pub(super) fn end_ns(&self) -> &AtomicU64 {
        &self.0[1]
    }
    /// 0, or the first fault as operation + 1 in the upper half and errno in the lower.
    fn fault(&self) -> &AtomicU64 {
        &self.0[2]
    }
    /// 0 until the clients may start.
    fn started(&self) -> &AtomicU32 {
        &self.1[0]
    }
    /// Clients that wait for the start.
    pub(super) fn ready(&self) -> &AtomicU32 {
        &self.1[1]
    }

    /// Clients whose work is done.
    fn ended(&self) -> &AtomicU32 {
        &self.1[2]
    }

    /// Marks a client's work as done. The last of `clients` wakes the coordinator.
    pub(super) fn end(&self, clients: usize) {
        if self.ended().fetch_add(1, Ordering::Release) + 1 == clients as u32 {
            // Cannot fail for a valid address; a coordinator that does not sleep sees the count.
            let _ = futex::wake(self.ended(), futex::Flags::empty(), 1);
        }
    }

    /// Sleeps for at most `ns` nanoseconds or until the last of `clients` is done; whether it is.
    pub(super) fn all_ended(&self, clients: usize, ns: u64) -> bool {
        let done = || self.ended().load(Ordering::Acquire);
        let deadline = now_ns() + ns;
        loop {
            let count = done();
            let now = now_ns();
            if count >= clients as u32 || now >= deadline {
                return count >= clients as u32;
            }
            let left = deadline - now;
            let timeout = Timespec {
                tv_sec: (left / 1_000_000_000) as i64,
                tv_nsec: (left % 1_000_000_000) as i64,
            };
            // Any error (EINTR, EAGAIN, ETIMEDOUT) means: look again.
            let _ = futex::wait(self.ended(), futex::Flags::empty(), count, Some(&timeout));
        }
    }

    pub(super) fn set_fault(&self, fault: ClientFault) {
        let packed = (fault.operation as u64 + 1) << 32 | u64::from(fault.errno.unsigned_abs());
        let _ = self.fault().compare_exchange(0, packed, Ordering::Release, Ordering::Relaxed);
        self.end_ns().fetch_min(now_ns(), Ordering::Relaxed);
    }

    pub(super) fn first_fault(&self) -> Option<ClientFault> {
        match self.fault().load(Ordering::Acquire) {
            0 => None,
            packed => Some(ClientFault {
                operation: (packed >> 32) as usize - 1,
                errno: (packed & 0xffff_ffff) as i32,
            }),
        }
    }

    /// Waits at the barrier as a client.
    pub(super) fn wait_for_start(&self) {
        self.ready().fetch_add(1, Ordering::Release);
        while self.started().load(Ordering::Acquire) == 0 {
            // Any error (EINTR, EAGAIN) means: look again.
            let _ = futex::wait(self.started(), futex::Flags::empty(), 0, None);
        }
    }

    pub(super) fn start(&self) {
        self.started().store(1, Ordering::Release);
        // Cannot fail for a valid address; a client that has not gone to sleep sees the store.
        let _ = futex::wake(self.started(), futex::Flags::empty(), i32::MAX as u32);
    }
}

/// Lets clients that wait for the start go home: the end is past.
pub(super) fn dismiss(control: &RunControl) {
    control.end_ns().store(0, Ordering::Relaxed);
    control.start();
}
