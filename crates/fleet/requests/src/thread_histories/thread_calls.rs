//! Calls of threads that sent and received.

use std::collections::HashMap;

use luc_fleet_clocks::HostId;

use crate::host_rows::{ByteDirection, EndId, MessageRow, ThreadId};
use crate::messages::{MessageEdge, MessageSide};

/// A send or a reception of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ThreadCall {
    pub(super) at_ns: u64,
    /// Number of the end of a reception on the thread's host; `None`: a send.
    connection: Option<u64>,
}

impl ThreadCall {
    /// Returns the end on which it received; `None`: it sent.
    pub(super) fn received_on(self, host: HostId) -> Option<EndId> {
        let connection = self.connection?;
        Some(EndId { host, connection })
    }
}

/// A reception, and the first send that it took bytes of.
#[derive(Debug, Clone, Copy)]
struct Reception {
    at_ns: u64,
    sent: MessageSide,
}

/// The calls of all threads, each list in the order of time.
#[derive(Debug)]
pub(super) struct ThreadCalls {
    of_threads: HashMap<ThreadId, Vec<ThreadCall>>,
    receptions: HashMap<EndId, Vec<Reception>>,
}

impl ThreadCalls {
    pub(super) fn new(messages: &[MessageRow], edges: &[MessageEdge]) -> Self {
        let mut of_threads: HashMap<ThreadId, Vec<ThreadCall>> = HashMap::new();
        for row in messages {
            of_threads.entry(row.thread_id()).or_default().push(ThreadCall {
                at_ns: row.at_ns,
                connection: (row.way == ByteDirection::Received).then_some(row.connection),
            });
        }
        for calls in of_threads.values_mut() {
            calls.sort_unstable();
            calls.shrink_to_fit();
        }
        Self { of_threads, receptions: find_receptions(edges) }
    }

    pub(super) fn of_thread(&self, thread: ThreadId) -> &[ThreadCall] {
        self.of_threads.get(&thread).map_or(&[], Vec::as_slice)
    }

    /// Returns the first send of bytes that were received on an end at a time.
    pub(super) fn sender(&self, end: EndId, at_ns: u64) -> Option<MessageSide> {
        let receptions = self.receptions.get(&end)?;
        let found = receptions.binary_search_by_key(&at_ns, |reception| reception.at_ns);
        Some(receptions[found.ok()?].sent)
    }
}

/// Finds the receptions on each end, in order.
fn find_receptions(edges: &[MessageEdge]) -> HashMap<EndId, Vec<Reception>> {
    let mut edges: Vec<&MessageEdge> = edges.iter().collect();
    edges.sort_unstable_by_key(|edge| (edge.to, edge.received.at_ns, edge.first_byte));
    edges.dedup_by_key(|edge| (edge.to, edge.received.at_ns));
    let reception = |edge: &&MessageEdge| Reception { at_ns: edge.received.at_ns, sent: edge.sent };
    let of_ends = edges.chunk_by(|a, b| a.to == b.to);
    of_ends.map(|edges| (edges[0].to, edges.iter().map(reception).collect())).collect()
}
