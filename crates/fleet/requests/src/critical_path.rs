//! Critical path of a request: the parts of its time, found backward from its answer.

mod intervals;
mod running_times;
mod thread_calls;
mod thread_effects;
mod walk_backward;

use luc_fleet_clocks::{HostEvent, ReferenceTime};

use crate::fleet_waits::{FleetWaits, ThreadWaits};
use crate::host_rows::{EndId, MessageRow, ThreadId, ThreadWait};
use crate::messages::{MessageEdge, MessageSide};
pub(crate) use intervals::{Interval, Intervals};
pub use running_times::{ProcessorTime, RunningTimes};
use thread_calls::{ThreadCall, ThreadCalls};
pub use thread_effects::Effects;

/// Divisor of the length of a turn of a wait. Before the next turn of that wait the thread runs for at most this
/// part.
const LOOK_DIVISOR: u64 = 10;

/// Kind of a part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathPartKind {
    /// The thread was on a processor.
    Running,
    /// The thread waited for a processor.
    Runnable {
        /// Processor that it got; `None`: not known.
        processor: Option<u32>,
    },
    /// The thread waited; the thread that it waited for is not known.
    Blocked,
    /// A message was on its way to the thread.
    Network {
        from: ThreadId,
        /// End that received it.
        to: EndId,
        /// Error of the part's begin and end, as clocks of hosts are only known to that; `None`: not bounded. 0 within
        /// a host.
        error_ns: Option<u64>,
    },
    /// Rows contradict each other.
    Contradictory,
}

/// A part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CriticalPathPart {
    /// Thread whose time it is.
    pub thread: ThreadId,
    /// Thread that waited for this one meanwhile.
    pub blocks: Option<ThreadId>,
    pub kind: PathPartKind,
    /// Begin, on the clock of the host that has the request.
    pub begin_ns: u64,
    /// End: the begin of the next part.
    pub end_ns: u64,
    /// Begin and end on the clock of the thread's own host; `None` where that clock is not known.
    pub own_ns: Option<[u64; 2]>,
    /// Begin of a wait, also for a processor, on the clock of the thread's own host. This names the row.
    pub wait_off_ns: Option<u64>,
    /// Index in [`CriticalPath::links`] of the link that led to the thread; `None`: the path ends with the thread.
    pub link: Option<usize>,
}

/// Reason why a thread is on a path: another one waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathLink {
    pub waiter: ThreadId,
    /// Begin of that wait, on the clock of the waiter's host.
    pub off_ns: u64,
    pub thread: ThreadId,
    /// Time at which `thread` woke the waiter, or sent its message, on the clock of its own host.
    pub at_ns: u64,
    /// The same time on the clock of the host that has the request.
    pub home_ns: u64,
    /// Whether the thread sent a message; else it woke the waiter.
    pub is_message: bool,
    /// Index in [`CriticalPath::links`] of the link that led to the waiter; `None`: the path ends with the waiter.
    pub above: Option<usize>,
    pub before: EarlierWork,
    /// Maximum by which the wait would have been shorter if this thread had needed no time. Then the wait would have
    /// lasted until the last of the other messages was sent that the waiter read next.
    pub slack_ns: u64,
}

/// Whether a thread's earlier work for other requests may have delayed this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlierWork {
    MayCount,
    /// The work delayed only the thread's own reading of a message for the request, not the sender of that message.
    OnlyForItself,
    /// It did not: the thread was free when the message came.
    WasFree,
}

/// Critical path of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// Parts without a gap, the earliest first.
    pub parts: Vec<CriticalPathPart>,
    /// Waits for other threads. A link comes after its `above`.
    pub links: Vec<PathLink>,
}

impl CriticalPath {
    /// Returns the links that led to a part's thread, the outermost first.
    #[must_use]
    pub fn chain(&self, part: &CriticalPathPart) -> Vec<usize> {
        let mut chain: Vec<usize> =
            std::iter::successors(part.link, |&link| self.links.get(link)?.above).collect();
        chain.reverse();
        chain
    }

    /// Returns the minimum by which the request would have been shorter, had parts been shorter. `removed` returns the
    /// time to remove from a part, by its index; of more than its length only the length counts.
    ///
    /// Where a thread waited for a message, it would have waited for the next one instead.
    #[must_use]
    pub fn saved_ns(&self, removed: impl Fn(usize) -> u64) -> u64 {
        let mut saved_ns = vec![0_u64; self.links.len()];
        let mut all_ns = 0_u64;
        for (at, part) in self.parts.iter().enumerate() {
            let removed_ns = removed(at).min(part.end_ns - part.begin_ns);
            let sum_ns = part.link.map_or(&mut all_ns, |link| &mut saved_ns[link]);
            *sum_ns = sum_ns.saturating_add(removed_ns);
        }
        // The link above has a lower index.
        for (at, link) in self.links.iter().enumerate().rev() {
            let of_link_ns = saved_ns[at].min(link.slack_ns);
            let sum_ns = link.above.map_or(&mut all_ns, |above| &mut saved_ns[above]);
            *sum_ns = sum_ns.saturating_add(of_link_ns);
        }
        all_ns
    }
}

/// Event that ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndedBy {
    /// A message that the thread then read on the end `to`.
    Message { sent: MessageSide, to: EndId },
    /// A wake-up by a thread of the same host.
    Waker(ThreadId),
}

/// A message that a thread read.
#[derive(Debug, Clone, Copy)]
struct Read {
    at_ns: u64,
    to: EndId,
    sent: MessageSide,
}

/// Waits and messages of each thread in order, from which paths are found.
#[derive(Debug)]
pub struct CriticalPaths<'w> {
    waits: &'w FleetWaits,
    calls: ThreadCalls,
}

impl<'w> CriticalPaths<'w> {
    /// Collects the rows of all hosts. Waits whose times are not in order are left out.
    #[must_use]
    pub fn new(waits: &'w FleetWaits, messages: &[MessageRow], edges: &[MessageEdge]) -> Self {
        Self { waits, calls: ThreadCalls::new(messages, edges) }
    }

    /// Returns the path from the end of an exchange back to its begin. Its parts sum to the time between exactly; there
    /// are none if there is no time between.
    ///
    /// While a thread runs, the path stays with it. The time of a wait is that of the thread that ended it: the one
    /// that woke the waiter, or that sent the message that the waiter then read. Before the wait the path is back
    /// with the waiter. If the thread that ended it waited itself meanwhile, that is the time of another thread, and
    /// so on. A thread may wait for a time, look and wait on. It has then waited all along for the event that ended
    /// the last of these turns.
    ///
    /// `place` maps an event on another host to the clock of this one
    /// ([`FleetClocks::global_ns`](luc_fleet_clocks::FleetClocks::global_ns) with this host as the reference). Where it
    /// returns `None`, the path stays here.
    #[must_use]
    pub fn critical(
        &self,
        begin: &MessageSide,
        end: &MessageSide,
        place: impl Fn(HostEvent) -> Option<ReferenceTime>,
    ) -> CriticalPath {
        walk_backward::walk_back(self, begin, end, place)
    }

    /// Returns the wait around a time.
    pub(crate) fn wait_at(&self, thread: ThreadId, at_ns: u64) -> Option<ThreadWait> {
        self.last_wait(thread, at_ns.checked_add(1)?).filter(|wait| at_ns < wait.on_ns)
    }

    /// Returns all waits, whether or not their times are in order.
    pub(crate) fn waits(&self) -> &'w FleetWaits {
        self.waits
    }

    fn waits_of(&self, thread: ThreadId) -> Option<ThreadWaits<'w>> {
        self.waits.of_thread(thread)
    }

    /// Whether the thread has a row.
    pub(crate) fn knows(&self, thread: ThreadId) -> bool {
        self.waits_of(thread).is_some() || !self.calls.of_thread(thread).is_empty()
    }

    /// Whether the thread did something after a time.
    #[must_use]
    pub fn acts_after(&self, thread: ThreadId, at_ns: u64) -> bool {
        let wait = self.waits_of(thread).and_then(ThreadWaits::last);
        let call = self.calls.of_thread(thread).last();
        wait.is_some_and(|wait| wait.on_ns > at_ns) || call.is_some_and(|call| call.at_ns > at_ns)
    }

    /// Returns the last wait that began before a time.
    fn last_wait(&self, thread: ThreadId, at_ns: u64) -> Option<ThreadWait> {
        let waits = self.waits_of(thread)?;
        waits.get(waits.began_before(at_ns).checked_sub(1)?)
    }

    /// Returns the turn before the one that began at `off_ns`. A thread that waits in turns waits for a time, looks and
    /// waits on. It has waited all along for the event that ends the last turn, if it did nothing for others between.
    fn turn_before(&self, thread: ThreadId, off_ns: u64) -> Option<ThreadWait> {
        let mut began_ns = off_ns;
        let mut ran_ns = 0_u64;
        loop {
            let before = self.last_wait(thread, began_ns)?;
            ran_ns = ran_ns.saturating_add(began_ns.saturating_sub(before.on_ns));
            if before.woken_ns.is_none() {
                // It only lost its processor.
                began_ns = before.off_ns;
                continue;
            }
            let waited_ns = before.on_ns - before.off_ns;
            let is_turn = before.may_be_input
                && before.waker.is_none()
                && ran_ns <= waited_ns / LOOK_DIVISOR
                && self.did_nothing(thread, [before.on_ns, off_ns]);
            return is_turn.then_some(before);
        }
    }

    /// Returns the wait before, if the thread could not read meanwhile and did nothing for others since then. It could
    /// not read if it was stopped, or waited for a disk.
    fn held_before(&self, wait: &ThreadWait) -> Option<ThreadWait> {
        let thread = wait.thread_id();
        let before = self.last_wait(thread, wait.off_ns)?;
        let is_held = !before.may_be_input && self.did_nothing(thread, [before.on_ns, wait.off_ns]);
        is_held.then_some(before)
    }

    /// Whether a thread sent, received and woke nothing between two times, both included.
    fn did_nothing(&self, thread: ThreadId, between_ns: [u64; 2]) -> bool {
        let woke = || self.waits.ended_by(thread, between_ns).next().is_some();
        !self.called(thread, between_ns) && !woke()
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
                return Some(EndedBy::Message { sent, to });
            }
        }
        let (host, thread) = (wait.host, wait.waker?);
        Some(EndedBy::Waker(ThreadId { host, thread }))
    }

    /// Returns the last message that a thread read after a wait and up to a time. A message that ended the wait does
    /// not count.
    fn read_since(&self, wait: Option<&ThreadWait>, thread: ThreadId, at_ns: u64) -> Option<Read> {
        let calls = self.calls.of_thread(thread);
        let calls = &calls[..calls.partition_point(|call| call.at_ns <= at_ns)];
        let first = match wait {
            Some(wait) => {
                let after = calls.partition_point(|call| call.at_ns < wait.on_ns);
                let has_ended = matches!(self.ended_by(wait), Some(EndedBy::Message { .. }));
                after + usize::from(has_ended)
            }
            None => 0,
        };
        let read = calls.get(first..)?.iter().rev();
        let mut read = read.filter_map(|call| {
            let to = call.received_on(thread.host)?;
            Some(Read { at_ns: call.at_ns, to, sent: self.calls.sender(to, call.at_ns)? })
        });
        read.next()
    }

    /// Returns the sends of other messages that a thread read after a time, before it waited or sent again. `first` is
    /// the end of the first message.
    fn other_sends(&self, thread: ThreadId, after_ns: u64, first: EndId) -> Vec<MessageSide> {
        let calls = self.calls_after(thread, after_ns).iter();
        let read = calls.map_while(|call| Some((call.received_on(thread.host)?, call.at_ns)));
        read.filter(|(end, _)| *end != first)
            .filter_map(|(end, at_ns)| self.calls.sender(end, at_ns))
            .collect()
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
