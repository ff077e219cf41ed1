//! What a request's time went into: its critical path, backward from its answer.

mod walk;

use std::collections::HashMap;

use crate::fleet::{Event, Placed};
use crate::messages::{MessageEdge, Side};
use crate::rows::{EndId, Message, ThreadId, Wait, Way};

/// What a part of a path was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// The thread was on a processor.
    Running,
    /// The thread could run, and waited for a processor.
    Runnable,
    /// The thread waited, and for whom is not known.
    Blocked,
    /// A message was on its way to the thread.
    Network {
        /// Who sent it.
        from: ThreadId,
        /// By how much the part's two ends may be off, since the clocks of hosts are only known to that; `None`: not
        /// bounded. 0 within a host.
        error_ns: Option<u64>,
    },
    /// Rows contradict each other.
    Contradictory,
}

/// A part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Whose time it is.
    pub thread: ThreadId,
    /// Who waited for this thread meanwhile, if another one did.
    pub blocks: Option<ThreadId>,
    /// What it was.
    pub kind: PartKind,
    /// When it began, on the clock of the host that has the request.
    pub begin_ns: u64,
    /// When it ended: when the next one begins.
    pub end_ns: u64,
}

/// What paths are made of: each thread's waits and messages in order.
#[derive(Debug, Default)]
pub struct Paths {
    waits: HashMap<ThreadId, Vec<Wait>>,
    /// When each thread received or sent, and the end if it received.
    calls: HashMap<ThreadId, Vec<(u64, Option<EndId>)>>,
    /// The first send that each reception took bytes of.
    senders: HashMap<(EndId, u64), Side>,
}

impl Paths {
    /// Of all hosts' rows. Waits whose times are not in order are left out.
    #[must_use]
    pub fn new(waits: &[Wait], messages: &[Message], edges: &[MessageEdge]) -> Self {
        let mut paths = Self::default();
        for &wait in waits {
            let is_in = |at_ns: u64| wait.off_ns <= at_ns && at_ns <= wait.on_ns;
            if wait.off_ns < wait.on_ns && wait.woken_ns.is_none_or(is_in) {
                let thread = ThreadId {
                    host: wait.host,
                    thread: wait.thread,
                };
                paths.waits.entry(thread).or_default().push(wait);
            }
        }
        for row in messages {
            let end = (row.way == Way::Received).then(|| row.end());
            paths
                .calls
                .entry(row.thread_id())
                .or_default()
                .push((row.at_ns, end));
        }
        paths
            .waits
            .values_mut()
            .for_each(|waits| waits.sort_unstable());
        paths
            .calls
            .values_mut()
            .for_each(|calls| calls.sort_unstable());
        let mut edges: Vec<&MessageEdge> = edges.iter().collect();
        edges.sort_unstable_by_key(|edge| (edge.to, edge.first_byte));
        for edge in edges {
            let reception = (edge.to, edge.received.at_ns);
            paths.senders.entry(reception).or_insert(edge.sent);
        }
        paths
    }

    /// The path from the end of an exchange back to its begin, the earliest part first. The parts follow each other
    /// without a gap, so that they sum to the time between exactly; empty if there is no time between.
    ///
    /// Running, the path stays with its thread. A wait is the time of whoever ended it: of the thread that woke it, or
    /// of the one that sent what it then read, as long as it lasted; before that the path is back with the thread. Where
    /// that one waited itself meanwhile, it is the time of another one, and so on.
    ///
    /// `place` says when something that happened on another host was on the clock of this one
    /// ([`Fleet::global_ns`](crate::Fleet::global_ns) with this host as the reference); where it does not know, the path
    /// stays here.
    #[must_use]
    pub fn critical(
        &self,
        begin: &Side,
        end: &Side,
        place: impl Fn(Event) -> Option<Placed>,
    ) -> Vec<Part> {
        walk::back(self, begin, end, place)
    }

    /// The wait around a time.
    pub(crate) fn wait_at(&self, thread: ThreadId, at_ns: u64) -> Option<&Wait> {
        self.last_wait(thread, at_ns.checked_add(1)?)
            .filter(|wait| at_ns < wait.on_ns)
    }

    /// Whether the thread has a row.
    pub(crate) fn knows(&self, thread: ThreadId) -> bool {
        self.waits.contains_key(&thread) || self.calls.contains_key(&thread)
    }

    /// Whether the thread has done something after a time.
    pub(crate) fn acts_after(&self, thread: ThreadId, at_ns: u64) -> bool {
        let waits = self.waits.get(&thread).and_then(|waits| waits.last());
        let calls = self.calls.get(&thread).and_then(|calls| calls.last());
        waits.is_some_and(|wait| wait.on_ns > at_ns) || calls.is_some_and(|call| call.0 > at_ns)
    }

    /// The last wait that began before a time.
    fn last_wait(&self, thread: ThreadId, at_ns: u64) -> Option<&Wait> {
        let waits = self.waits.get(&thread)?;
        let next = waits.partition_point(|wait| wait.off_ns < at_ns);
        waits.get(next.checked_sub(1)?)
    }

    /// Who sent what the thread read first after a wait. `Err` if it read something, but who sent it is not known.
    pub(crate) fn sender(&self, thread: ThreadId, wait: &Wait) -> Result<Option<Side>, ()> {
        let calls = self.calls.get(&thread).map_or(&[][..], Vec::as_slice);
        let first = calls.partition_point(|(at_ns, _)| *at_ns < wait.on_ns);
        let until_ns = self.waits.get(&thread).and_then(|waits| {
            let next = waits.partition_point(|other| other.off_ns < wait.on_ns);
            Some(waits.get(next)?.off_ns)
        });
        match calls.get(first) {
            Some(&(at_ns, Some(end))) if until_ns.is_none_or(|until_ns| at_ns <= until_ns) => {
                self.senders.get(&(end, at_ns)).copied().map(Some).ok_or(())
            }
            _ => Ok(None),
        }
    }
}
