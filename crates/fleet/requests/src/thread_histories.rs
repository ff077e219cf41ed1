//! Waits and messages of each thread, in the order of time.

mod intervals;
mod thread_calls;
mod thread_effects;

use crate::fleet_waits::{FleetWaits, ThreadWaits};
use crate::host_rows::{MessageRow, ThreadId, ThreadWait};
use crate::messages::{MessageEdge, MessageSide};
pub(crate) use intervals::{Interval, Intervals};
use thread_calls::{ThreadCall, ThreadCalls};
pub use thread_effects::Effects;

/// Event that ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndedBy {
    /// A message that the thread then read.
    Message(MessageSide),
    /// A wake-up by a thread of the same host.
    Waker(ThreadId),
}

/// Waits and messages of each thread in order.
#[derive(Debug)]
pub struct ThreadHistories<'w> {
    waits: &'w FleetWaits,
    calls: ThreadCalls,
}

impl<'w> ThreadHistories<'w> {
    /// Collects the rows of all hosts. Waits whose times are not in order are left out.
    #[must_use]
    pub fn new(waits: &'w FleetWaits, messages: &[MessageRow], edges: &[MessageEdge]) -> Self {
        Self { waits, calls: ThreadCalls::new(messages, edges) }
    }

    /// Returns all waits, whether or not their times are in order.
    pub(crate) fn waits(&self) -> &'w FleetWaits {
        self.waits
    }

    fn waits_of(&self, thread: ThreadId) -> Option<ThreadWaits<'w>> {
        self.waits.of_thread(thread)
    }

    /// Whether the thread did something after a time.
    #[must_use]
    pub fn acts_after(&self, thread: ThreadId, at_ns: u64) -> bool {
        let wait = self.waits_of(thread).and_then(ThreadWaits::last);
        let call = self.calls.of_thread(thread).last();
        wait.is_some_and(|wait| wait.on_ns > at_ns) || call.is_some_and(|call| call.at_ns > at_ns)
    }

    /// Whether a thread sent or received something between two times, both included.
    pub(crate) fn called(&self, thread: ThreadId, [begin_ns, end_ns]: [u64; 2]) -> bool {
        let calls = self.calls.of_thread(thread);
        let call = calls.get(calls.partition_point(|call| call.at_ns < begin_ns));
        call.is_some_and(|call| call.at_ns <= end_ns)
    }

    /// Returns the event that ended a wait; `None`: not known.
    ///
    /// If the thread reads a message next, the message ended its wait, whatever the row's waker is. But a message
    /// does not end a wait that was not for input. Nor does one that a thread of the same host sent later.
    pub(crate) fn ended_by(&self, wait: &ThreadWait) -> Option<EndedBy> {
        let first = self.calls_after(wait.thread_id(), wait.on_ns).first();
        let received = first.and_then(|call| Some((call.at_ns, call.received_on(wait.host)?)));
        if let Some((at_ns, to)) = received.filter(|_| wait.may_be_input) {
            let sent = self.calls.sender(to, at_ns)?;
            let ended_ns = wait.woken_ns.unwrap_or(wait.on_ns);
            if sent.host != wait.host || sent.at_ns <= ended_ns {
                return Some(EndedBy::Message(sent));
            }
        }
        let (host, thread) = (wait.host, wait.waker?);
        Some(EndedBy::Waker(ThreadId { host, thread }))
    }

    /// Returns the calls of a thread after a time and before it waited.
    fn calls_after(&self, thread: ThreadId, after_ns: u64) -> &[ThreadCall] {
        let calls = self.calls.of_thread(thread);
        let first = calls.partition_point(|call| call.at_ns < after_ns);
        let until_ns = self.waits_of(thread).and_then(|waits| {
            let next = waits.began_before(after_ns);
            Some(waits.get(next)?.off_ns)
        });
        let calls = &calls[first..];
        let end = until_ns
            .map_or(calls.len(), |until_ns| calls.partition_point(|call| call.at_ns <= until_ns));
        &calls[..end]
    }
}
