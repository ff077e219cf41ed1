//! What a request's time went into: its critical path, backward from its answer.

mod calls;
mod effects;
mod intervals;
mod running;
mod walk;

use luc_fleet_clocks::{Event, Placed};

use crate::messages::{MessageEdge, Side};
use crate::rows::{EndId, Message, ThreadId, Wait};
use crate::waits::{ThreadWaits, Waits};
use calls::{Call, Calls};
pub use effects::Effects;
pub(crate) use intervals::{Interval, Intervals};
pub use running::{Ran, Running};

/// Between two turns of one wait a thread runs for this part of the first one at most.
const LOOK: u64 = 10;

/// What a part of a path was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// The thread was on a processor.
    Running,
    /// The thread could run, and waited for a processor.
    Runnable {
        /// The one that it got; `None`: not known.
        processor: Option<u32>,
    },
    /// The thread waited, and for whom is not known.
    Blocked,
    /// A message was on its way to the thread.
    Network {
        from: ThreadId,
        /// On which end it came.
        to: EndId,
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
    pub kind: PartKind,
    /// When it began, on the clock of the host that has the request.
    pub begin_ns: u64,
    /// When it ended: when the next one begins.
    pub end_ns: u64,
    /// The same two times on the clock of the thread's own host; `None` where that clock is not known.
    pub own_ns: Option<[u64; 2]>,
    /// Of a wait, also for a processor: when it began, on the clock of the thread's own host. This names the row.
    pub wait_off_ns: Option<u64>,
    /// How the thread came to be on the path, an index of [`Path::links`]; `None`: the path ends with it.
    pub link: Option<usize>,
}

/// Why a thread is on a path: another one waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub waiter: ThreadId,
    /// When that wait began, on the clock of the waiter's host.
    pub off_ns: u64,
    pub thread: ThreadId,
    /// When that one did, on the clock of its own host: when it woke the other, or sent what that read.
    pub at_ns: u64,
    /// The same on the clock of the host that has the request.
    pub home_ns: u64,
    /// Whether by a message; else by a wake-up.
    pub is_message: bool,
    /// Why the waiter is on the path, an index of [`Path::links`]; `None`: the path ends with it.
    pub above: Option<usize>,
    /// Whether what this thread did before for other requests may have held this one up.
    pub before: Before,
    /// The wait would have been shorter by this at most if this thread had needed no time: until the last of other
    /// messages was sent that the waiter read next.
    pub slack_ns: u64,
}

/// Whether what a thread did before for other requests may have held up the one that it was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    MayCount,
    /// It read what came for the request later than it might have. It did not hold up who sent that.
    OnlyForItself,
    /// It did not: the thread was free when that came.
    WasFree,
}

/// What a request's time went into.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path {
    /// The parts, the earliest first. They follow each other without a gap.
    pub parts: Vec<Part>,
    /// Who waited for whom. What is above comes first.
    pub links: Vec<Link>,
}

impl Path {
    /// The links by which a part's thread came to be on the path, the outermost first.
    #[must_use]
    pub fn chain(&self, part: &Part) -> Vec<usize> {
        let mut chain: Vec<usize> =
            std::iter::successors(part.link, |&link| self.links.get(link)?.above).collect();
        chain.reverse();
        chain
    }

    /// By how much the request would have been shorter at least, had parts been shorter. `removed` says of a part, by its
    /// place, by how much; never more than its length.
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
        // What is above has a lower number.
        for (at, link) in self.links.iter().enumerate().rev() {
            let of_link_ns = saved_ns[at].min(link.slack_ns);
            let sum_ns = link.above.map_or(&mut all_ns, |above| &mut saved_ns[above]);
            *sum_ns = sum_ns.saturating_add(of_link_ns);
        }
        all_ns
    }
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndedBy {
    /// A message that the thread then read.
    Message {
        /// Who sent it, and when.
        sent: Side,
        /// On which end it came.
        to: EndId,
    },
    /// A thread of the same host, which woke it.
    Waker(ThreadId),
}

/// A message that a thread read.
#[derive(Debug, Clone, Copy)]
struct Read {
    at_ns: u64,
    to: EndId,
    sent: Side,
}

/// What paths are made of: each thread's waits and messages in order.
#[derive(Debug)]
pub struct Paths<'w> {
    waits: &'w Waits,
    calls: Calls,
}

impl<'w> Paths<'w> {
    /// Of all hosts' rows. Waits whose times are not in order are left out.
    #[must_use]
    pub fn new(waits: &'w Waits, messages: &[Message], edges: &[MessageEdge]) -> Self {
        Self { waits, calls: Calls::new(messages, edges) }
    }

    /// The path from the end of an exchange back to its begin. Its parts sum to the time between exactly; there are none
    /// if there is no time between.
    ///
    /// Running, the path stays with its thread. A wait is the time of whoever ended it: of the thread that woke it, or
    /// of the one that sent what it then read, as long as it lasted; before that the path is back with the thread. Where
    /// that one waited itself meanwhile, it is the time of another one, and so on. A thread that waits for a time, looks
    /// and waits on, has waited all along for what ended the last of these turns.
    ///
    /// `place` says when something that happened on another host was on the clock of this one
    /// ([`Fleet::global_ns`](luc_fleet_clocks::Fleet::global_ns) with this host as the reference); where it does not know, the path
    /// stays here.
    #[must_use]
    pub fn critical(
        &self,
        begin: &Side,
        end: &Side,
        place: impl Fn(Event) -> Option<Placed>,
    ) -> Path {
        walk::back(self, begin, end, place)
    }

    /// The wait around a time.
    pub(crate) fn wait_at(&self, thread: ThreadId, at_ns: u64) -> Option<Wait> {
        self.last_wait(thread, at_ns.checked_add(1)?).filter(|wait| at_ns < wait.on_ns)
    }

    /// All waits, whether or not their times are in order.
    pub(crate) fn waits(&self) -> &'w Waits {
        self.waits
    }

    fn waits_of(&self, thread: ThreadId) -> Option<ThreadWaits<'w>> {
        self.waits.of_thread(thread)
    }

    /// Whether the thread has a row.
    pub(crate) fn knows(&self, thread: ThreadId) -> bool {
        self.waits_of(thread).is_some() || !self.calls.of_thread(thread).is_empty()
    }

    /// Whether the thread has done something after a time.
    #[must_use]
    pub fn acts_after(&self, thread: ThreadId, at_ns: u64) -> bool {
        let wait = self.waits_of(thread).and_then(ThreadWaits::last);
        let call = self.calls.of_thread(thread).last();
        wait.is_some_and(|wait| wait.on_ns > at_ns) || call.is_some_and(|call| call.at_ns > at_ns)
    }

    /// The last wait that began before a time.
    fn last_wait(&self, thread: ThreadId, at_ns: u64) -> Option<Wait> {
        let waits = self.waits_of(thread)?;
        waits.get(waits.began_before(at_ns).checked_sub(1)?)
    }

    /// The turn before, of a wait in turns: a thread waits for a time, and after it looks and waits on. It has waited all
    /// along for what ends the last turn, if it did nothing for others between. `off_ns` is when the turn began.
    fn turn_before(&self, thread: ThreadId, off_ns: u64) -> Option<Wait> {
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
                && ran_ns <= waited_ns / LOOK
                && self.did_nothing(thread, [before.on_ns, off_ns]);
            return is_turn.then_some(before);
        }
    }

    /// The wait before, if the thread could not read meanwhile, as it was stopped or waited for a disk, and did nothing for
    /// others since then.
    fn held_before(&self, wait: &Wait) -> Option<Wait> {
        let thread = wait.thread_id();
        let before = self.last_wait(thread, wait.off_ns)?;
        let is_held = !before.may_be_input && self.did_nothing(thread, [before.on_ns, wait.off_ns]);
        is_held.then_some(before)
    }

    /// Whether a thread sent, received and woke nothing between two times, which count.
    fn did_nothing(&self, thread: ThreadId, between_ns: [u64; 2]) -> bool {
        let woke = || self.waits.ended_by(thread, between_ns).next().is_some();
        !self.called(thread, between_ns) && !woke()
    }

    /// Whether a thread sent or received something between two times, which count.
    pub(crate) fn called(&self, thread: ThreadId, [begin_ns, end_ns]: [u64; 2]) -> bool {
        let calls = self.calls.of_thread(thread);
        let call = calls.get(calls.partition_point(|call| call.at_ns < begin_ns));
        call.is_some_and(|call| call.at_ns <= end_ns)
    }

    /// What ended a wait; `None`: not known.
    ///
    /// Where the thread reads a message next, the message ended its wait, whoever is said to have woken it; but not if it
    /// did not wait for one, or if a thread of the same host sent it later.
    pub(crate) fn ended_by(&self, wait: &Wait) -> Option<EndedBy> {
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

    /// The last message that a thread read after a wait and up to a time, which did not end that wait.
    fn read_since(&self, wait: Option<&Wait>, thread: ThreadId, at_ns: u64) -> Option<Read> {
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

    /// Who sent the other messages that a thread read after a time, before it waited or sent again.
    fn other_senders(&self, thread: ThreadId, after_ns: u64, first: EndId) -> Vec<Side> {
        let calls = self.calls_after(thread, after_ns).iter();
        let read = calls.map_while(|call| Some((call.received_on(thread.host)?, call.at_ns)));
        read.filter(|(end, _)| *end != first)
            .filter_map(|(end, at_ns)| self.calls.sender(end, at_ns))
            .collect()
    }

    /// What a thread sent and received after a time and before it waited.
    fn calls_after(&self, thread: ThreadId, after_ns: u64) -> &[Call] {
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
