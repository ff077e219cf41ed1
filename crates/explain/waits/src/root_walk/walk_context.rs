//! Place of a walk: the chain that led there.

use crate::graph_ids::{GraphMessageId, GraphThread, TraceIndex};
use crate::wait_root::LinkIndex;

/// The chain that led to a point of a walk.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkContext {
    /// Trace whose clock shows the times.
    pub(super) clock: TraceIndex,
    /// Number of threads and calls that wait, each for the next.
    pub(super) depth: u32,
    /// Thread whose queue the request lies in meanwhile.
    pub(super) queue: Option<GraphThread>,
    /// Whether the queue's thread, or a server that it has asked, waits for a thread that does not serve it: for the
    /// holder of a lock.
    pub(super) is_behind_lock: bool,
    /// Last link of the chain.
    pub(super) link: Option<LinkIndex>,
    /// Message that lies at its socket meanwhile.
    pub(super) delivered: Option<GraphMessageId>,
}

impl WalkContext {
    /// Returns the context of a question on the clock of a trace.
    pub(super) fn new(clock: TraceIndex) -> Self {
        Self { clock, depth: 0, queue: None, is_behind_lock: false, link: None, delivered: None }
    }

    /// Returns the context on the clock of another trace.
    pub(super) fn on_clock_of(self, clock: TraceIndex) -> Self {
        Self { clock, ..self }
    }

    /// Returns the context after one more link.
    pub(super) fn deeper(self, link: LinkIndex) -> Self {
        Self { link: Some(link), ..self.one_deeper() }
    }

    /// Returns the context after one more step inside the same link.
    pub(super) fn one_deeper(self) -> Self {
        Self { depth: self.depth.saturating_add(1), ..self }
    }

    /// Returns the context behind a lock.
    pub(super) fn behind_lock(self) -> Self {
        Self { is_behind_lock: true, ..self }
    }

    /// Returns the context in the queue of a thread. The outermost queue counts.
    pub(super) fn in_queue_of(self, thread: GraphThread) -> Self {
        match self.queue {
            Some(_) => self,
            None => Self { queue: Some(thread), is_behind_lock: false, ..self },
        }
    }
}
