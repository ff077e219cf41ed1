//! Judges whether the edges are those of the messages that were sent.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddrV4;

use luc_twin_truth::{Direction, Folder, Message};
use serde::Serialize;

use crate::answer::{Edge, Rows};
use crate::hosts::Clock;

/// Counts of messages by judgement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct EdgeCounts {
    pub(super) planted: u64,
    /// Messages with all bytes on edges from the sending thread to the receiving one.
    pub(super) found: u64,
    /// Messages with bytes on no edge.
    pub(super) missing: u64,
    /// Messages with bytes on an edge of another thread, or of an impossible time.
    pub(super) wrong: u64,
}

type Stream = (String, String);

/// Counts all messages. `clocks` are those of the processes' hosts; `None` if they have one.
pub(super) fn count(folder: &Folder, rows: &Rows, clocks: Option<&[Clock]>) -> EdgeCounts {
    // Another twin may run at the same time, with the same addresses.
    let processes: BTreeSet<u32> =
        folder.processes.iter().map(|process| process.header.process).collect();
    let mut edges: HashMap<Stream, Vec<&Edge>> = HashMap::new();
    for edge in &rows.edges {
        if processes.contains(&edge.sent.process) {
            let stream = (edge.from.clone(), edge.to.clone());
            edges.entry(stream).or_default().push(edge);
        }
    }
    let messages = messages(folder, clocks);
    let mut received: HashMap<(SocketAddrV4, SocketAddrV4, u64), &Message> = HashMap::new();
    for message in &messages {
        if message.direction == Direction::Received {
            let place = (message.remote, message.local, message.first_byte);
            received.insert(place, message);
        }
    }
    let mut counts = EdgeCounts::default();
    let sent = messages.iter();
    for sent in sent.filter(|one| one.direction == Direction::Sent) {
        counts.planted += 1;
        let stream = (sent.local.to_string(), sent.remote.to_string());
        let edges = edges.get(&stream).map_or(&[][..], Vec::as_slice);
        let place = (sent.local, sent.remote, sent.first_byte);
        let counted = match received.get(&place) {
            Some(received) => verdict(sent, received, edges),
            None => Verdict::Missing,
        };
        *match counted {
            Verdict::Found => &mut counts.found,
            Verdict::Missing => &mut counts.missing,
            Verdict::Wrong => &mut counts.wrong,
        } += 1;
    }
    counts
}

/// Returns all messages, with times by the hosts' clocks.
fn messages(folder: &Folder, clocks: Option<&[Clock]>) -> Vec<Message> {
    let mut all = Vec::new();
    for (place, process) in folder.processes.iter().enumerate() {
        let clock = clocks.and_then(|clocks| clocks.get(place));
        all.extend(process.messages().map(|message| Message {
            at_ns: clock.map_or(message.at_ns, |clock| clock.time_ns(message.at_ns)),
            ..*message
        }));
    }
    all
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Found,
    Missing,
    Wrong,
}

/// Judges a message. `edges` are those of its stream.
fn verdict(sent: &Message, received: &Message, edges: &[&Edge]) -> Verdict {
    let (first, end) = (sent.first_byte, sent.first_byte + u64::from(sent.bytes));
    let mut covered = 0;
    for edge in edges {
        let edge_end = edge.first_byte + edge.bytes;
        let overlap = end.min(edge_end).saturating_sub(first.max(edge.first_byte));
        if overlap == 0 {
            continue;
        }
        covered += overlap;
        let are_threads_right =
            (edge.sent.thread, edge.received.thread) == (sent.thread, received.thread);
        // The twin looks at the clock before it sends and after it has received.
        let are_times_right =
            sent.at_ns <= edge.sent.at_ns && edge.received.at_ns <= received.at_ns;
        if !are_threads_right || !are_times_right {
            return Verdict::Wrong;
        }
    }
    if covered == end - first { Verdict::Found } else { Verdict::Missing }
}

#[cfg(test)]
mod tests {
    use luc_twin_truth::MessageKind;

    use super::*;
    use crate::answer::Side;

    fn message(direction: Direction, thread: u32, at_ns: u64) -> Message {
        Message {
            at_ns,
            thread,
            request: 1,
            parent: 0,
            kind: MessageKind::Query,
            direction,
            local: "10.0.0.1:1".parse().expect("an address"),
            remote: "10.0.0.2:2".parse().expect("an address"),
            first_byte: 100,
            bytes: 50,
        }
    }

    fn edge(first_byte: u64, bytes: u64, thread: u32, at_ns: u64) -> Edge {
        let side = |thread, at_ns| Side { process: 1, thread, at_ns };
        Edge {
            from: String::new(),
            to: String::new(),
            first_byte,
            bytes,
            sent: side(7, at_ns),
            received: side(thread, 90),
        }
    }

    #[test]
    fn a_message_is_found_whole_or_not() {
        let sent = message(Direction::Sent, 7, 10);
        let received = message(Direction::Received, 8, 100);
        let judged = |edges: &[Edge]| {
            let edges: Vec<&Edge> = edges.iter().collect();
            verdict(&sent, &received, &edges)
        };
        // Two sends, of which the first has bytes of the message before.
        assert_eq!(judged(&[edge(60, 60, 8, 11), edge(120, 30, 8, 11)]), Verdict::Found);
        assert_eq!(judged(&[edge(60, 60, 8, 11)]), Verdict::Missing);
        assert_eq!(judged(&[edge(150, 9, 8, 11)]), Verdict::Missing);
        // Another thread, and before it was sent.
        assert_eq!(judged(&[edge(100, 50, 9, 11)]), Verdict::Wrong);
        assert_eq!(judged(&[edge(100, 50, 8, 9)]), Verdict::Wrong);
    }
}
