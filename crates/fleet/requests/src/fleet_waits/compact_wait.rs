//! A wait in 40 bytes.

use luc_fleet_clocks::HostId;

use crate::host_rows::{ThreadIdentity, ThreadWait};

/// Index of no thread.
const NO_THREAD: u32 = u32::MAX;

/// Index of a thread among those of a host that wait or wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HostThread(pub(super) u32);

/// A [`ThreadWait`] of a host, with indices for threads. A `ThreadWait` takes 88 bytes: it has its host, both threads
/// in full, and a word for each `Option`.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompactWait {
    pub(super) off_ns: u64,
    woken_ns: u64,
    pub(super) on_ns: u64,
    pub(super) thread: HostThread,
    waker: HostThread,
    processor: u32,
    is_woken: bool,
    has_processor: bool,
    may_be_input: bool,
    may_be_hand_over: bool,
}

const _: () = assert!(size_of::<CompactWait>() == 40);

impl CompactWait {
    pub(super) fn new(wait: &ThreadWait, thread: HostThread, waker: Option<HostThread>) -> Self {
        Self {
            off_ns: wait.off_ns,
            woken_ns: wait.woken_ns.unwrap_or_default(),
            on_ns: wait.on_ns,
            thread,
            waker: waker.unwrap_or(HostThread(NO_THREAD)),
            processor: wait.processor.unwrap_or_default(),
            is_woken: wait.woken_ns.is_some(),
            has_processor: wait.processor.is_some(),
            may_be_input: wait.may_be_input,
            may_be_hand_over: wait.may_be_hand_over,
        }
    }

    /// `threads` are those of the host, by index.
    pub(super) fn expand(&self, host: HostId, threads: &[ThreadIdentity]) -> ThreadWait {
        ThreadWait {
            host,
            thread: threads[self.thread.0 as usize],
            off_ns: self.off_ns,
            woken_ns: self.woken_ns(),
            on_ns: self.on_ns,
            waker: self.waker().map(|waker| threads[waker.0 as usize]),
            may_be_input: self.may_be_input,
            may_be_hand_over: self.may_be_hand_over,
            processor: self.has_processor.then_some(self.processor),
        }
    }

    pub(super) fn woken_ns(&self) -> Option<u64> {
        self.is_woken.then_some(self.woken_ns)
    }

    pub(super) fn waker(&self) -> Option<HostThread> {
        (self.waker.0 != NO_THREAD).then_some(self.waker)
    }

    /// Returns the times in the order of a [`ThreadWait`]'s fields.
    pub(super) fn times(&self) -> (u64, Option<u64>, u64) {
        (self.off_ns, self.woken_ns(), self.on_ns)
    }

    /// Whether it took time, and the wake-up was meanwhile.
    pub(super) fn is_in_order(&self) -> bool {
        let is_in = |at_ns: u64| self.off_ns <= at_ns && at_ns <= self.on_ns;
        self.off_ns < self.on_ns && self.woken_ns().is_none_or(is_in)
    }
}
