//! A client's view of a run.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;

use super::now_ns;
use super::run_control::RunControl;
use crate::latency::ClientLatencyRecorder;

/// A client's side of a run.
#[derive(Debug)]
pub struct WorkloadClient<'a> {
    /// Number of the client, from 0.
    pub index: usize,
    pub(super) control: &'a RunControl,
    pub(super) recorder: ClientLatencyRecorder<'a>,
}

impl WorkloadClient<'_> {
    /// Returns whether the client should go on at `now_ns`.
    #[inline]
    pub fn running(&self, now_ns: u64) -> bool {
        now_ns < self.control.end_ns().load(Ordering::Relaxed)
    }

    /// Returns whether an operation that ended at `now_ns` lies in the measured interval.
    #[inline]
    pub fn counts(&self, now_ns: u64) -> bool {
        now_ns >= self.control.begin_ns().load(Ordering::Relaxed) && self.running(now_ns)
    }

    /// Records a latency; the caller has asked [`WorkloadClient::counts`].
    #[inline]
    pub fn record(&self, operation: usize, ns: u64) {
        self.recorder.record(operation, ns);
    }

    /// Returns the time until the end of the run, ns.
    pub fn left_ns(&self, now_ns: u64) -> u64 {
        let end_ns = self.control.end_ns().load(Ordering::Relaxed);
        end_ns.saturating_sub(now_ns)
    }

    /// Ends the run at `now_ns`, if it has not ended.
    pub fn end_run(&self, now_ns: u64) {
        self.control.end_ns().fetch_min(now_ns, Ordering::Relaxed);
    }

    /// Returns when all clients of a run without warm-up were released, ns.
    pub(super) fn start_ns(&self) -> u64 {
        self.control.begin_ns().load(Ordering::Relaxed)
    }

    /// Sleeps until `until_ns`, or until the end of the run if that comes first.
    pub(super) fn sleep_until(&self, until_ns: u64) {
        loop {
            let now = now_ns();
            if now >= until_ns || !self.running(now) {
                return;
            }
            let wake_ns = until_ns.min(now + 100_000_000);
            let wake = Timespec {
                tv_sec: (wake_ns / 1_000_000_000) as i64,
                tv_nsec: (wake_ns % 1_000_000_000) as i64,
            };
            // A signal only means to check again.
            let _ = clock_nanosleep_absolute(ClockId::Monotonic, &wake);
        }
    }

    /// Thinks for `think_ns`, or until the end of the run if that comes first.
    pub fn think(&self, think_ns: u64) {
        if think_ns == 0 {
            return;
        }
        let until = now_ns() + think_ns;
        loop {
            let now = now_ns();
            if now >= until || !self.running(now) {
                return;
            }
            std::thread::sleep(Duration::from_nanos((until - now).min(100_000_000)));
        }
    }
}
