//! Calls of threads that sent and received.

use std::collections::HashMap;

use luc_fleet_clocks::HostId;

use crate::host_rows::{ByteDirection, EndId, MessageRow, ThreadId, ThreadIdentity};
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Send {
    at_ns: u64,
    thread: ThreadIdentity,
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
    sends: HashMap<EndId, Vec<Send>>,
    receptions: HashMap<EndId, Vec<Reception>>,
}

impl ThreadCalls {
    pub(super) fn new(messages: &[MessageRow], edges: &[MessageEdge]) -> Self {
        let mut of_threads: HashMap<ThreadId, Vec<ThreadCall>> = HashMap::new();
        let mut sends: HashMap<EndId, Vec<Send>> = HashMap::new();
        for row in messages {
            if row.way == ByteDirection::Sent {
                let of_end = sends.entry(row.end()).or_default();
                of_end.push(Send { at_ns: row.at_ns, thread: row.thread });
            }
            of_threads.entry(row.thread_id()).or_default().push(ThreadCall {
                at_ns: row.at_ns,
                connection: (row.way == ByteDirection::Received).then_some(row.connection),
            });
        }
        for calls in of_threads.values_mut() {
            calls.sort_unstable();
            calls.shrink_to_fit();
        }
        for sends in sends.values_mut() {
            sends.sort_unstable();
            sends.shrink_to_fit();
        }
        Self { of_threads, sends, receptions: find_receptions(edges) }
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

    /// Returns the time and thread of the last send on an end before a time. Bytes that then come in answer it, if
    /// anything.
    pub(super) fn last_send(&self, end: EndId, before_ns: u64) -> Option<(u64, ThreadId)> {
        let sends = self.sends.get(&end)?;
        let next = sends.partition_point(|send| send.at_ns < before_ns);
        let &Send { at_ns, thread } = sends.get(next.checked_sub(1)?)?;
        Some((at_ns, ThreadId { host: end.host, thread }))
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
