//! Coupling of readers, writers and the log: the semaphores of Filebench's `oltp.f`.
//!
//! There each read posts to every writer and to the log (`sempost`). A writer takes `value` posts after each burst
//! (`semblock`). No reader may be further ahead of it than the highwater mark. Here all posts are one counter, and a
//! consumer's credit is the sum of its demands so far.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::thread::futex::{self, Timespec};

use crate::shared_memory::SharedSlice;
use crate::workers::{WorkloadClient, now_ns};

/// The longest sleep without a look at the end of the run, ns.
const MAX_SLEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Demand of a consumer after each of its bursts.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConsumerDemand {
    /// Reads per burst (`value`).
    pub(super) reads: u64,
    /// Reads that may be ahead of the consumer (`highwater`).
    pub(super) ahead: u64,
}

/// Counters shared by all clients.
#[derive(Debug)]
pub(super) struct SemaphoreCoupling {
    demands: Vec<ConsumerDemand>,
    posted: SharedSlice<AtomicU64>,
    /// Bursts that each consumer has ended.
    bursts: SharedSlice<AtomicU64>,
    /// Changed when consumers, and when readers, should look again.
    signals: SharedSlice<AtomicU32>,
}

impl SemaphoreCoupling {
    pub(super) fn new(demands: Vec<ConsumerDemand>) -> io::Result<Self> {
        Ok(Self {
            posted: SharedSlice::new(1)?,
            bursts: SharedSlice::new(demands.len())?,
            signals: SharedSlice::new(2)?,
            demands,
        })
    }

    /// Tells the consumers that a reader has read, and waits until none is too far behind.
    pub(super) fn post(&self, client: &WorkloadClient<'_>) {
        let mine = self.posted[0].fetch_add(1, Ordering::AcqRel) + 1;
        let bursts = |consumer: usize| self.bursts[consumer].load(Ordering::Acquire);
        if (0..self.demands.len()).any(|c| mine == self.demands[c].reads * bursts(c)) {
            signal(&self.signals[0]);
        }
        let allowed = |c: usize| {
            let ConsumerDemand { reads, ahead } = self.demands[c];
            mine <= ahead + reads * bursts(c)
        };
        wait(client, &self.signals[1], || (0..self.demands.len()).all(allowed));
    }

    /// Ends a burst of consumer number `consumer`, and waits until enough has been read for another.
    pub(super) fn take(&self, client: &WorkloadClient<'_>, consumer: usize) {
        let bursts = self.bursts[consumer].fetch_add(1, Ordering::AcqRel) + 1;
        signal(&self.signals[1]);
        let wanted = self.demands[consumer].reads * bursts;
        wait(client, &self.signals[0], || self.posted[0].load(Ordering::Acquire) >= wanted);
    }
}

fn signal(word: &AtomicU32) {
    word.fetch_add(1, Ordering::Release);
    // Cannot fail for a valid address.
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

/// Waits until `done` or the end of the run.
fn wait(client: &WorkloadClient<'_>, word: &AtomicU32, done: impl Fn() -> bool) {
    loop {
        let seen = word.load(Ordering::Acquire);
        if done() || !client.running(now_ns()) {
            return;
        }
        // Any error (EINTR, EAGAIN, ETIMEDOUT) means to check again.
        let _ = futex::wait(word, futex::Flags::empty(), seen, Some(&MAX_SLEEP));
    }
}
