//! Events of the threads of one host, in the order of its clock.

use std::collections::HashMap;

use super::ids::{CallId, RequestId, ThreadIndex};
use crate::fleet_waits::HostWaits;
use crate::host_rows::{ByteDirection, MessageRow, ThreadIdentity};

/// An action of a thread, or its wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ThreadEvent {
    pub(super) at_ns: u64,
    pub(super) kind: ThreadEventKind,
    pub(super) thread: ThreadIndex,
    /// Begin of the wait that a wake-up ends; of other events `at_ns`.
    pub(super) since_ns: u64,
}

/// Kinds of events, in the order in which they happen at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ThreadEventKind {
    /// The thread was woken by this one, if that is known.
    Woken(Option<ThreadIndex>),
    /// It read some of a request.
    ReadsRequest(RequestId),
    /// It read some of the answer to a call.
    ReadsAnswer(CallId),
    /// It sent the first bytes of a call.
    Asks(CallId),
    /// It wrote some of the answer to a request.
    Answers(RequestId),
    /// It read something else.
    Reads,
    /// It sent something else.
    Sends,
}

/// Exchange that a row belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) enum RowRole {
    OfRequest(RequestId),
    /// The first bytes of a call.
    OpensCall(CallId),
    /// Later bytes of a call or of its answer.
    OfCall(CallId),
}

/// The events of one host.
#[derive(Debug, Default)]
pub(super) struct HostTimeline {
    pub(super) events: Vec<ThreadEvent>,
    /// Number of threads of the host.
    pub(super) threads: usize,
    /// Whether all wake-ups are among the events.
    pub(super) has_wake_ups: bool,
}

impl HostTimeline {
    /// Merges a host's waits and messages. A wake-up is no event if the thread reads next: then the message explains
    /// it, and the waker may be a thread that an interrupt has stopped.
    pub(super) fn new(
        waits: Option<&HostWaits>,
        rows: &[&MessageRow],
        roles: &[Option<RowRole>],
        has_wake_ups: bool,
    ) -> Self {
        // 1. An index for each thread.
        let of_waits = waits.map_or(&[][..], HostWaits::threads).iter().copied();
        let mut threads: Vec<ThreadIdentity> =
            of_waits.chain(rows.iter().map(|row| row.thread)).collect();
        threads.sort_unstable();
        threads.dedup();
        let indices: HashMap<ThreadIdentity, ThreadIndex> =
            threads.into_iter().zip((0..).map(ThreadIndex)).collect();
        // 2. Events of waits and of messages, sorted.
        let capacity = waits.map_or(0, |waits| waits.iter().len()) + rows.len();
        let mut events: Vec<ThreadEvent> = Vec::with_capacity(capacity);
        for wait in waits.into_iter().flat_map(HostWaits::iter) {
            let Some(at_ns) = wait.woken_ns else { continue };
            let waker = wait.waker.filter(|_| wait.may_be_hand_over);
            events.push(ThreadEvent {
                at_ns,
                kind: ThreadEventKind::Woken(waker.map(|waker| indices[&waker])),
                thread: indices[&wait.thread],
                since_ns: wait.off_ns,
            });
        }
        for (row, role) in rows.iter().zip(roles) {
            let kind = match (row.way, *role) {
                (ByteDirection::Received, Some(RowRole::OfRequest(id))) => {
                    ThreadEventKind::ReadsRequest(id)
                }
                (ByteDirection::Sent, Some(RowRole::OfRequest(id))) => ThreadEventKind::Answers(id),
                (ByteDirection::Sent, Some(RowRole::OpensCall(id))) => ThreadEventKind::Asks(id),
                (ByteDirection::Received, Some(RowRole::OpensCall(id) | RowRole::OfCall(id))) => {
                    ThreadEventKind::ReadsAnswer(id)
                }
                (ByteDirection::Received, None) => ThreadEventKind::Reads,
                (ByteDirection::Sent, Some(RowRole::OfCall(_)) | None) => ThreadEventKind::Sends,
            };
            let (at_ns, thread) = (row.at_ns, indices[&row.thread]);
            events.push(ThreadEvent { at_ns, kind, thread, since_ns: at_ns });
        }
        events.sort_unstable();
        // 3. Drop wake-ups of threads that read next.
        let mut reads_next = vec![false; indices.len()];
        let mut keep: Vec<bool> = Vec::with_capacity(events.len());
        for event in events.iter().rev() {
            let next = &mut reads_next[event.thread.0];
            keep.push(!matches!(event.kind, ThreadEventKind::Woken(_)) || !*next);
            *next = matches!(
                event.kind,
                ThreadEventKind::ReadsRequest(_)
                    | ThreadEventKind::ReadsAnswer(_)
                    | ThreadEventKind::Reads
            );
        }
        let mut keep = keep.into_iter().rev();
        events.retain(|_| keep.next().unwrap_or(true));
        Self { events, threads: indices.len(), has_wake_ups }
    }
}
