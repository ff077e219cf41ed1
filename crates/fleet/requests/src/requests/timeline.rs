//! What the threads of one host did, in the order of its clock.

use std::collections::HashMap;

use super::exchange::Part;
use super::roles::Role;
use crate::rows::{Message, Thread, Way};
use crate::waits::HostWaits;

/// Something that a thread did, or that was done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub(super) at_ns: u64,
    pub(super) kind: Kind,
    /// The thread's number on this host.
    pub(super) thread: usize,
    /// Of a wake-up since when the thread has waited.
    pub(super) since_ns: u64,
}

/// What it was, in the order in which things happen at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// It was woken by this thread, if that is known.
    Woken(Option<usize>),
    /// It read some of a request; of which is the number in all that come in.
    ReadsRequest(usize),
    /// It read some of an answer; to which is the number in all that go out.
    ReadsAnswer(usize),
    /// It sent the first bytes of a request.
    Asks(usize),
    /// It wrote some of an answer.
    Answers(usize),
    /// It read something else.
    Reads,
    /// It sent something else.
    Sends,
}

/// What a row is: who asks on its end, the number of its exchange among all of that kind, and its part in it.
pub(super) type Place = (Role, usize, Part);

/// The events of one host.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    pub(super) events: Vec<Event>,
    pub(super) threads: usize,
    /// Whether all wake-ups are among them.
    pub(super) has_wake_ups: bool,
}

impl Timeline {
    /// Of a host's waits and messages, and of the part in an exchange that each message has. A wake-up is no event if a
    /// message explains it: if the thread reads next. Then the waker may be a thread that an interrupt has stopped.
    pub(super) fn new(
        waits: Option<&HostWaits>,
        rows: &[&Message],
        parts: &[Option<Place>],
        has_wake_ups: bool,
    ) -> Self {
        let of_waits = waits.map_or(&[][..], HostWaits::threads).iter().copied();
        let mut threads: Vec<Thread> = of_waits.chain(rows.iter().map(|row| row.thread)).collect();
        threads.sort_unstable();
        threads.dedup();
        let numbers: HashMap<Thread, usize> = threads.into_iter().zip(0..).collect();
        let most = waits.map_or(0, |waits| waits.iter().len()) + rows.len();
        let mut events: Vec<Event> = Vec::with_capacity(most);
        for wait in waits.into_iter().flat_map(HostWaits::iter) {
            let Some(at_ns) = wait.woken_ns else { continue };
            let waker = wait.waker.filter(|_| wait.may_be_hand_over);
            events.push(Event {
                at_ns,
                kind: Kind::Woken(waker.map(|waker| numbers[&waker])),
                thread: numbers[&wait.thread],
                since_ns: wait.off_ns,
            });
        }
        for (row, part) in rows.iter().zip(parts) {
            let kind = match (row.way, part) {
                (Way::Received, Some((Role::Server, exchange, _))) => Kind::ReadsRequest(*exchange),
                (Way::Sent, Some((Role::Server, exchange, _))) => Kind::Answers(*exchange),
                (Way::Received, Some((Role::Client, exchange, _))) => Kind::ReadsAnswer(*exchange),
                (Way::Sent, Some((Role::Client, exchange, Part::Opens))) => Kind::Asks(*exchange),
                (Way::Received, None) => Kind::Reads,
                (Way::Sent, _) => Kind::Sends,
            };
            events.push(Event {
                at_ns: row.at_ns,
                kind,
                thread: numbers[&row.thread],
                since_ns: row.at_ns,
            });
        }
        events.sort_unstable();
        let threads = numbers.len();
        let mut reads_next = vec![false; threads];
        let mut keep: Vec<bool> = Vec::with_capacity(events.len());
        for event in events.iter().rev() {
            let next = &mut reads_next[event.thread];
            keep.push(!matches!(event.kind, Kind::Woken(_)) || !*next);
            *next =
                matches!(event.kind, Kind::ReadsRequest(_) | Kind::ReadsAnswer(_) | Kind::Reads);
        }
        let mut keep = keep.into_iter().rev();
        events.retain(|_| keep.next().unwrap_or(true));
        Self { events, threads, has_wake_ups }
    }
}
