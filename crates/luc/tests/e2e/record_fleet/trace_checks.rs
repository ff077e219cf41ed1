//! Connections, messages and packets of a trace, and checks of them.

use std::collections::BTreeMap;
use std::path::Path;

use luc_events::event_kinds::{MessageDirection, SequenceSource, SocketRole};
use luc_events::store::TraceReader;
use luc_events::tables::{
    AsleepThread, ClockSample, ConnectionMessage, LostEvents, OffCpuWait, ProcessProgram,
    SocketConnection, TcpPacket, ThreadInfo, ThreadStart,
};
use luc_events::{ConnectionId, Inode};

use super::planted_exchange::{ConnectedPair, PlantedExchange};
use super::two_hosts::TwoHosts;
use crate::common::fleet_recording::FleetRecording;
use crate::common::rows;

/// Rows that were recorded; of each connection the last one.
pub(crate) struct RecordedRows {
    pub(crate) connections: BTreeMap<ConnectionId, SocketConnection>,
    pub(crate) messages: Vec<ConnectionMessage>,
    pub(crate) packets: Vec<TcpPacket>,
    pub(crate) clocks: Vec<ClockSample>,
    pub(crate) tasks: Vec<ThreadInfo>,
    pub(crate) waits: Vec<OffCpuWait>,
    pub(crate) asleep: Vec<AsleepThread>,
    pub(crate) starts: Vec<ThreadStart>,
    pub(crate) programs: Vec<ProcessProgram>,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// Rows of both ends of one connection.
pub(crate) struct BothEnds<'a> {
    pub(crate) client: &'a SocketConnection,
    pub(crate) server: &'a SocketConnection,
}

impl RecordedRows {
    /// Ends a recording, and reads its trace.
    pub(crate) fn of(recording: FleetRecording) -> Self {
        let trace = recording.stop();
        Self::read(&trace.path(), &trace.text)
    }

    /// Records one exchange on a connection of its own, from the client to `to`, where the server listens at `bind`.
    /// Returns the client's port, too.
    pub(crate) fn of_exchange(
        options: &[&str],
        place: &TwoHosts,
        [bind, to]: [&str; 2],
        messages: &PlantedExchange,
    ) -> (Self, u32) {
        let recording = FleetRecording::start(options);
        let pair = ConnectedPair::new(place, bind, to);
        pair.exchange(messages);
        let port = pair.client_port();
        drop(pair);
        (Self::of(recording), port)
    }

    /// The messages that are in a trace by now.
    pub(crate) fn messages_so_far(recording: &FleetRecording) -> Vec<ConnectionMessage> {
        rows(&TraceReader::open(&recording.path()).expect("a trace"))
    }

    /// Reads a trace that may have lost nothing; `text` is what its recorder said.
    pub(crate) fn read(directory: &Path, text: &str) -> Self {
        Self::of_reader(&TraceReader::open(directory).expect("a trace"), text)
    }

    /// The same of a trace that is open.
    pub(crate) fn of_reader(reader: &TraceReader, text: &str) -> Self {
        assert_eq!(rows::<LostEvents>(reader), [], "{text}");
        let mut connections = BTreeMap::new();
        for row in rows::<SocketConnection>(reader) {
            connections.insert(row.connection, row);
        }
        Self {
            connections,
            messages: rows(reader),
            packets: rows(reader),
            clocks: rows(reader),
            tasks: rows(reader),
            waits: rows(reader),
            asleep: rows(reader),
            starts: rows(reader),
            programs: rows(reader),
            start_ns: reader.trace().start_ns,
            end_ns: reader.trace().end_ns,
        }
    }

    /// The end in `namespace` whose ports are these.
    pub(crate) fn end(
        &self,
        namespace: Inode,
        local_port: u32,
        remote_port: Option<u32>,
    ) -> &SocketConnection {
        let mut found = self.connections.values().filter(|row| {
            row.namespace == namespace
                && row.local_port == local_port
                && remote_port.is_none_or(|port| row.remote_port == port)
        });
        let first = found.next();
        assert!(found.next().is_none(), "two connections with one pair of ports");
        first
            .unwrap_or_else(|| panic!("no connection of port {local_port}: {:?}", self.connections))
    }

    /// Both ends, which are found by the client's port and know each other by their initial sequence numbers.
    pub(crate) fn ends(&self, client: Inode, server: Inode, client_port: u32) -> BothEnds<'_> {
        let client = self.end(client, client_port, None);
        assert_ne!(client.sequences, SequenceSource::Unknown, "{client:?}");
        let mut matching = self.connections.values().filter(|row| {
            row.namespace == server
                && row.initial_sent == client.initial_received
                && row.initial_received == client.initial_sent
                && row.sequences != SequenceSource::Unknown
        });
        let server = matching.next().expect("the server's end");
        assert!(matching.next().is_none(), "initial sequence numbers are of one connection");
        assert_eq!((client.side, server.side), (SocketRole::Client, SocketRole::Server));
        BothEnds { client, server }
    }

    /// The rows of one direction at one end, by their bytes.
    pub(crate) fn messages_of(
        &self,
        end: &SocketConnection,
        direction: MessageDirection,
    ) -> Vec<&ConnectionMessage> {
        let mut rows: Vec<&ConnectionMessage> = self
            .messages
            .iter()
            .filter(|row| row.connection == end.connection && row.direction == direction)
            .collect();
        rows.sort_by_key(|row| row.first_byte);
        rows
    }

    pub(crate) fn packets_of(
        &self,
        end: &SocketConnection,
        direction: MessageDirection,
    ) -> Vec<&TcpPacket> {
        self.packets
            .iter()
            .filter(|row| row.connection == end.connection && row.direction == direction)
            .collect()
    }

    /// Checks that the rows of both directions at both ends have just these bytes, from `first` on. There is no gap,
    /// no byte is in two rows, and nothing arrives before it was sent.
    pub(crate) fn check_messages(&self, ends: &BothEnds<'_>, first: [u64; 2], bytes: [u64; 2]) {
        for ((from, to), (first, bytes)) in [(ends.client, ends.server), (ends.server, ends.client)]
            .into_iter()
            .zip(first.into_iter().zip(bytes))
        {
            let sent = self.messages_of(from, MessageDirection::Sent);
            let received = self.messages_of(to, MessageDirection::Received);
            for rows in [&sent, &received] {
                let mut next = first;
                for row in rows {
                    assert_eq!(row.first_byte, next, "a gap or an overlap: {rows:?}");
                    assert!(row.bytes > 0, "{row:?}");
                    assert!(row.process == from.opener_process || row.process == to.opener_process);
                    next += row.bytes;
                }
                assert_eq!(next - first, bytes, "{rows:?}");
            }
            for (sent, received) in overlapping(&sent, &received, |row| (row.first_byte, row.bytes))
            {
                assert!(sent.at_ns <= received.at_ns, "{sent:?} {received:?}");
            }
        }
    }

    /// Checks that no packet arrives before it was sent, and that no byte is in two rows of one device. Returns how
    /// many pairs of rows have bytes in common, or acknowledge the same.
    pub(crate) fn check_packets(&self, ends: &BothEnds<'_>) -> usize {
        let mut pairs = 0;
        for (from, to) in [(ends.client, ends.server), (ends.server, ends.client)] {
            let sent = self.packets_of(from, MessageDirection::Sent);
            let received = self.packets_of(to, MessageDirection::Received);
            for rows in [&sent, &received] {
                let mut with_bytes: Vec<_> = rows.iter().filter(|row| row.bytes > 0).collect();
                with_bytes.sort_by_key(|row| row.first_byte);
                for pair in with_bytes.windows(2) {
                    assert!(pair[0].first_byte + pair[0].bytes <= pair[1].first_byte, "{pair:?}");
                }
            }
            for (sent, received) in overlapping(&sent, &received, |row| (row.first_byte, row.bytes))
            {
                assert!(sent.at_ns <= received.at_ns, "{sent:?} {received:?}");
                pairs += 1;
            }
            for sent in sent.iter().filter(|row| row.ack > 0) {
                for received in received.iter().filter(|row| row.ack == sent.ack) {
                    assert!(sent.at_ns <= received.at_ns, "{sent:?} {received:?}");
                    pairs += 1;
                }
            }
        }
        pairs
    }
}

/// Pairs of rows whose ranges of bytes overlap.
fn overlapping<'a, T>(
    left: &[&'a T],
    right: &[&'a T],
    range: impl Fn(&T) -> (u64, u64),
) -> Vec<(&'a T, &'a T)> {
    let mut pairs = Vec::new();
    for &one in left {
        let (first, bytes) = range(one);
        for &other in right {
            let (other_first, other_bytes) = range(other);
            if first < other_first + other_bytes && other_first < first + bytes {
                pairs.push((one, other));
            }
        }
    }
    pairs
}
