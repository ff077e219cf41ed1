//! When threads sent and received.

use std::collections::HashMap;

use luc_fleet_clocks::HostId;

use crate::messages::{MessageEdge, Side};
use crate::rows::{EndId, Message, Thread, ThreadId, Way};

/// A send or a reception of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Call {
    pub(super) at_ns: u64,
    /// Of a reception, the number of the end on the thread's host.
    connection: Option<u64>,
}

impl Call {
    /// On which end it received; `None`: it sent.
    pub(super) fn received_on(self, host: HostId) -> Option<EndId> {
        let connection = self.connection?;
        Some(EndId { host, connection })
    }
}

/// The calls of all threads.
#[derive(Debug)]
pub(super) struct Calls {
    /// In the order of time.
    of_threads: HashMap<ThreadId, Vec<Call>>,
    /// What was sent on each end: when, and by whom of the end's host.
    sent: HashMap<EndId, Vec<(u64, Thread)>>,
    /// When bytes were received on each end, and the first send that each reception took some of.
    received: HashMap<EndId, Vec<(u64, Side)>>,
}

impl Calls {
    pub(super) fn new(messages: &[Message], edges: &[MessageEdge]) -> Self {
        let mut of_threads: HashMap<ThreadId, Vec<Call>> = HashMap::new();
        let mut sent: HashMap<EndId, Vec<(u64, Thread)>> = HashMap::new();
        for row in messages {
            if row.way == Way::Sent {
                let of_end = sent.entry(row.end()).or_default();
                of_end.push((row.at_ns, row.thread));
            }
            of_threads.entry(row.thread_id()).or_default().push(Call {
                at_ns: row.at_ns,
                connection: (row.way == Way::Received).then_some(row.connection),
            });
        }
        for calls in of_threads.values_mut() {
            calls.sort_unstable();
            calls.shrink_to_fit();
        }
        for sent in sent.values_mut() {
            sent.sort_unstable();
            sent.shrink_to_fit();
        }
        Self { of_threads, sent, received: received(edges) }
    }

    /// Those of a thread in the order of time.
    pub(super) fn of_thread(&self, thread: ThreadId) -> &[Call] {
        self.of_threads.get(&thread).map_or(&[], Vec::as_slice)
    }

    /// Who sent first what was received on an end at a time.
    pub(super) fn sender(&self, end: EndId, at_ns: u64) -> Option<Side> {
        let received = self.received.get(&end)?;
        let found = received.binary_search_by_key(&at_ns, |(at_ns, _)| *at_ns);
        Some(received[found.ok()?].1)
    }

    /// Who sent last on an end before a time, and when: what comes in then is the answer to it, if to anything.
    pub(super) fn asker(&self, end: EndId, before_ns: u64) -> Option<(u64, ThreadId)> {
        let sent = self.sent.get(&end)?;
        let next = sent.partition_point(|(at_ns, _)| *at_ns < before_ns);
        let &(at_ns, thread) = sent.get(next.checked_sub(1)?)?;
        let host = end.host;
        Some((at_ns, ThreadId { host, thread }))
    }
}

/// When bytes were received on each end, in order, and the first send that each reception took some of.
fn received(edges: &[MessageEdge]) -> HashMap<EndId, Vec<(u64, Side)>> {
    let mut edges: Vec<&MessageEdge> = edges.iter().collect();
    edges.sort_unstable_by_key(|edge| (edge.to, edge.received.at_ns, edge.first_byte));
    edges.dedup_by_key(|edge| (edge.to, edge.received.at_ns));
    let of_ends = edges.chunk_by(|a, b| a.to == b.to);
    let of_end = |edges: &[&MessageEdge]| {
        let received = edges.iter().map(|edge| (edge.received.at_ns, edge.sent));
        (edges[0].to, received.collect())
    };
    of_ends.map(of_end).collect()
}
