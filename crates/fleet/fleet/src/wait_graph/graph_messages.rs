//! Messages of the hosts as the graph wants them.

use std::ops::Range;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    ByteDirection, ConnectionOpener, EndId, MatchedMessages, MessageRow, MessageSide,
};
use luc_waits::{EndIndex, GraphMessage, GraphMessageId, MessageIndex, TraceIndex, TraceThread};

use crate::host_clocks::HomeClock;
use crate::joined_traces::JoinedTraces;

/// Index of a thread that has no row. It is not in any list of threads.
const NO_THREAD: TraceThread = TraceThread(u32::MAX);

/// Returns the messages of a host, in the order of its rows. `ranges` are the places of each host's rows.
pub(super) fn messages(
    joined: &JoinedTraces,
    matched: &MatchedMessages,
    ranges: &[Range<usize>],
    host: HostId,
) -> Vec<GraphMessage> {
    let Some(range) = ranges.get(host.0 as usize).cloned() else {
        return Vec::new();
    };
    let rows = &joined.rows.messages;
    let threads = &joined.host(host).threads;
    let home = joined.clocks.at_home(host);
    let id = |at: usize| {
        let trace = rows.get(at)?.host.0;
        let first = ranges.get(trace as usize)?.start;
        let message = MessageIndex(u32::try_from(at.checked_sub(first)?).ok()?);
        Some(GraphMessageId { trace: TraceIndex(trace), message })
    };
    let convert = |at: usize| {
        let row = &rows[at];
        let others = matched.other_rows(at);
        let packet_ns = joined.rows.packet_times.get(at).copied().filter(|&at_ns| at_ns > 0);
        let received = others.filter(|_| row.way == ByteDirection::Received);
        // A server that is late reads the request together with the next one.
        let is_of_server = joined
            .ends
            .get(&row.end())
            .is_some_and(|end| end.opener == Some(ConnectionOpener::Peer));
        let sender = received.map(|[first, last]| if is_of_server { first } else { last });
        GraphMessage {
            at_ns: row.at_ns,
            moved_ns: packet_ns
                .or_else(|| sent_ns(&home, &rows[sender?], row))
                .unwrap_or(row.at_ns),
            has_packet: packet_ns.is_some(),
            thread: threads.known(row.thread).unwrap_or(NO_THREAD),
            end: end(row.connection),
            is_received: row.way == ByteDirection::Received,
            other: others.and_then(|[_, last]| id(last)),
        }
    };
    range.map(convert).collect()
}

/// Returns the number of an end in its trace.
fn end(connection: u64) -> EndIndex {
    EndIndex(u32::try_from(connection).unwrap_or(u32::MAX))
}

/// Returns the time of a send on the receiver's clock. No message is received before it is sent.
fn sent_ns(home: &HomeClock<'_>, sent: &MessageRow, received: &MessageRow) -> Option<u64> {
    let at_ns = home.place_ns(sent.host, sent.at_ns)?.at_ns?;
    Some(u64::try_from(at_ns).ok()?.min(received.at_ns))
}

/// The messages of one host, found by end and time.
#[derive(Debug)]
pub(super) struct HostMessages<'a> {
    rows: &'a [MessageRow],
    /// Places of the rows, in the order of ends and times.
    sorted: Vec<u32>,
}

impl<'a> HostMessages<'a> {
    pub(super) fn new(joined: &'a JoinedTraces, range: Range<usize>) -> Self {
        let rows = joined.rows.messages.get(range).unwrap_or_default();
        let mut sorted: Vec<u32> = (0..).take(rows.len()).collect();
        sorted.sort_unstable_by_key(|&at| {
            let row = &rows[at as usize];
            (row.connection, row.at_ns, row.way, row.first_byte)
        });
        Self { rows, sorted }
    }

    /// Returns the message of a thread at a time of an end.
    pub(super) fn find(
        &self,
        end: EndId,
        side: &MessageSide,
        way: ByteDirection,
    ) -> Option<GraphMessageId> {
        let key = (end.connection, side.at_ns, way);
        let key_of = |at: u32| {
            let row = &self.rows[at as usize];
            (row.connection, row.at_ns, row.way)
        };
        let first = self.sorted.partition_point(|&at| key_of(at) < key);
        let mut same = self.sorted[first..].iter().take_while(|&&at| key_of(at) == key);
        let found = same.find(|&&at| self.rows[at as usize].thread == side.thread)?;
        Some(GraphMessageId { trace: TraceIndex(end.host.0), message: MessageIndex(*found) })
    }
}
