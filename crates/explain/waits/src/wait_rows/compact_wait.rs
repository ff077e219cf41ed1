//! A wait in 40 bytes.

use luc_events::WaitCause;

use crate::graph_ids::TraceThread;
use crate::graph_rows::{GraphWait, WaitEnd};

/// Index of no thread, and number of no processor.
const NONE: u32 = u32::MAX;

/// A [`GraphWait`] without the words that each `Option` takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompactWait {
    pub(super) off_ns: u64,
    woken_ns: u64,
    on_ns: u64,
    thread: u32,
    waker: u32,
    processor: u32,
    cause: WaitCause,
    end: WaitEnd,
    is_woken: bool,
}

const _: () = assert!(size_of::<CompactWait>() == 40);

impl CompactWait {
    pub(super) fn new(wait: &GraphWait) -> Self {
        Self {
            off_ns: wait.off_ns,
            woken_ns: wait.woken_ns.unwrap_or_default(),
            on_ns: wait.on_ns,
            thread: wait.thread.0,
            waker: wait.waker.map_or(NONE, |waker| waker.0),
            processor: wait.processor.unwrap_or(NONE),
            cause: wait.cause,
            end: wait.end,
            is_woken: wait.woken_ns.is_some(),
        }
    }

    pub(super) fn expand(&self) -> GraphWait {
        GraphWait {
            thread: self.thread(),
            off_ns: self.off_ns,
            woken_ns: self.woken_ns(),
            on_ns: self.on_ns,
            waker: self.waker(),
            end: self.end,
            cause: self.cause,
            processor: (self.processor != NONE).then_some(self.processor),
        }
    }

    pub(super) fn thread(&self) -> TraceThread {
        TraceThread(self.thread)
    }

    pub(super) fn woken_ns(&self) -> Option<u64> {
        self.is_woken.then_some(self.woken_ns)
    }

    pub(super) fn waker(&self) -> Option<TraceThread> {
        (self.waker != NONE).then_some(TraceThread(self.waker))
    }
}
