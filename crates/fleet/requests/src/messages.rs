//! Messages: sends, and the receptions that took their bytes.

mod byte_claims;

use luc_fleet_clocks::HostId;

use crate::connections::{Connections, PairEvidence, StreamIndex};
use crate::host_rows::{ByteDirection, EndId, MessageRow, RowId, ThreadId, ThreadIdentity};
use byte_claims::{ByteClaim, RowBytes, find_pieces};

/// Thread and time of a call that sent or received bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageSide {
    pub host: HostId,
    pub thread: ThreadIdentity,
    pub process: u32,
    /// CLOCK_MONOTONIC of that host ([`MessageRow::at_ns`]).
    pub at_ns: u64,
}

impl MessageSide {
    pub(crate) fn of(row: &MessageRow) -> Self {
        Self { host: row.host, thread: row.thread, process: row.process, at_ns: row.at_ns }
    }

    #[must_use]
    pub fn thread_id(&self) -> ThreadId {
        ThreadId { host: self.host, thread: self.thread }
    }
}

/// Bytes of one send that one reception took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageEdge {
    pub from: EndId,
    pub to: EndId,
    /// Offset of the first of these bytes at the sender.
    pub first_byte: u64,
    pub bytes: u64,
    pub sent: MessageSide,
    pub received: MessageSide,
}

/// Reason why bytes are on no edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GapKind {
    /// The sender has no row of them: it is lost, or they were sent before its trace began.
    NoSend,
    /// The receiver has no row of them: it is lost, or they were not read before its trace ended.
    NoReception,
    /// Several sends claim them.
    SeveralSends,
    /// Several receptions claim them.
    SeveralReceptions,
    /// A FIN, which counts as one byte: received last, one after the last byte that was sent.
    Fin,
}

/// Bytes of one direction that are on no edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteGap {
    pub from: EndId,
    pub to: EndId,
    /// Offset of the first of these bytes at the sender; negative before its origin.
    pub first_byte: i128,
    pub bytes: u64,
    pub kind: GapKind,
}

/// Numbers of rows that take no part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnmatchedRows {
    /// Rows that are equal to another one.
    pub duplicates: u64,
    /// Rows without bytes: reads at the end of the stream.
    pub empty: u64,
    /// Damaged rows: their offsets do not fit into 64 bits.
    pub beyond: u64,
    /// Rows of ends without a peer.
    pub unpaired: u64,
}

/// The messages between paired ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatchedMessages {
    /// In order of pairs, directions and bytes.
    pub edges: Vec<MessageEdge>,
    /// Bytes that are on no edge, in the same order.
    pub gaps: Vec<ByteGap>,
    pub left_out: UnmatchedRows,
    /// By row: the rows of the other side that have its first and its last byte, or [`NO_ROW`].
    others: Vec<[u32; 2]>,
}

/// Number that stands for a missing row.
const NO_ROW: u32 = u32::MAX;

impl MatchedMessages {
    /// Returns the rows of the other side that have a row's first and last byte. Only bytes on edges count.
    #[must_use]
    pub fn other_rows(&self, row: usize) -> Option<[usize; 2]> {
        let others = self.others.get(row).filter(|others| others[0] != NO_ROW);
        others.map(|others| others.map(|other| other as usize))
    }

    /// Matches sends and receptions, in any order, by the bytes of each direction of each pair. Bytes that several rows
    /// of one side claim are on no edge. Retransmission has no part in this, since a program reads each byte once.
    /// Takes linear time but for sorting.
    #[must_use]
    pub fn matched(connections: &Connections, rows: &[MessageRow]) -> Self {
        let mut found = Self { others: vec![[NO_ROW; 2]; rows.len()], ..Self::default() };
        let places = connections.places();
        // 1. The bytes of each row, by stream.
        let mut placed: Vec<(StreamIndex, RowBytes)> = Vec::with_capacity(rows.len());
        for (id, row) in (0..).map(RowId).zip(rows) {
            if row.bytes == 0 {
                found.left_out.empty += 1;
                continue;
            }
            let Some(place) = places.get(&row.end()) else {
                found.left_out.unpaired += 1;
                continue;
            };
            let stream = place.stream(row.way);
            match row_bytes(id, row, connections.pairs[stream.pair()].shifts[stream.sender()]) {
                Some(bytes) => placed.push((stream, bytes)),
                None => found.left_out.beyond += 1,
            }
        }
        placed.sort_unstable_by(|(a_stream, a), (b_stream, b)| {
            let content = |bytes: &RowBytes| (bytes.is_received, bytes.first, rows[bytes.row.0]);
            (a_stream, content(a)).cmp(&(b_stream, content(b)))
        });
        // 2. Duplicates.
        let count = placed.len();
        placed.dedup_by(|(a_stream, a), (b_stream, b)| {
            a_stream == b_stream && rows[a.row.0] == rows[b.row.0]
        });
        found.left_out.duplicates = (count - placed.len()) as u64;
        // 3. Edges and gaps.
        for placed in placed.chunk_by(|a, b| a.0 == b.0) {
            let stream = placed[0].0;
            let pair = &connections.pairs[stream.pair()];
            let direction = Direction {
                from: pair.ends[stream.sender()],
                to: pair.ends[stream.receiver()],
                moved: scale_move(ByteDirection::Sent, pair.shifts[stream.sender()]),
                has_fin: pair.evidence != PairEvidence::Host,
            };
            let bytes: Vec<RowBytes> = placed.iter().map(|(_, bytes)| *bytes).collect();
            direction.add_edges(&bytes, rows, &mut found);
        }
        found
    }
}

/// Returns the number to add to offsets of one side. Both sides then have one scale, and no offset is negative.
fn scale_move(way: ByteDirection, shift: i64) -> u64 {
    match way {
        ByteDirection::Sent => shift.min(0).unsigned_abs(),
        ByteDirection::Received => shift.max(0).unsigned_abs(),
    }
}

/// Returns a row's bytes on the scale of both sides; `None` beyond 64 bits.
fn row_bytes(id: RowId, row: &MessageRow, shift: i64) -> Option<RowBytes> {
    let first = row.first_byte.checked_add(scale_move(row.way, shift))?;
    let end = first.checked_add(row.bytes)?;
    Some(RowBytes { first, end, is_received: row.way == ByteDirection::Received, row: id })
}

/// One direction of a connection.
struct Direction {
    from: EndId,
    to: EndId,
    /// Difference between offsets on the scale of both sides and the sender's.
    moved: u64,
    /// Whether the end of the stream may count as a byte.
    has_fin: bool,
}

impl Direction {
    fn add_edges(&self, ranges: &[RowBytes], rows: &[MessageRow], found: &mut MatchedMessages) {
        let last = |is_received| {
            let side = ranges.iter().filter(|range| range.is_received == is_received);
            side.map(|range| range.end).max()
        };
        let (last_sent, last_received) = (last(false), last(true));
        for piece in find_pieces(ranges) {
            let bytes = piece.end - piece.first;
            let is_fin = self.has_fin
                && bytes == 1
                && last_sent == Some(piece.first)
                && last_received == Some(piece.end);
            let kind = match (piece.sent, piece.received) {
                (ByteClaim::One(sent), ByteClaim::One(received)) => {
                    // Pieces are in the order of bytes.
                    for (row, other) in [(sent, received), (received, sent)] {
                        let [first, last] = &mut found.others[row.0];
                        *last = u32::try_from(other.0).unwrap_or(NO_ROW);
                        if *first == NO_ROW {
                            *first = *last;
                        }
                    }
                    found.edges.push(MessageEdge {
                        from: self.from,
                        to: self.to,
                        first_byte: piece.first - self.moved,
                        bytes,
                        sent: MessageSide::of(&rows[sent.0]),
                        received: MessageSide::of(&rows[received.0]),
                    });
                    continue;
                }
                (ByteClaim::Several, _) => GapKind::SeveralSends,
                (_, ByteClaim::Several) => GapKind::SeveralReceptions,
                (ByteClaim::One(_), ByteClaim::Nobody) => GapKind::NoReception,
                (ByteClaim::Nobody, _) if is_fin => GapKind::Fin,
                (ByteClaim::Nobody, _) => GapKind::NoSend,
            };
            self.add_gap(piece.first, bytes, kind, found);
        }
    }

    /// Adds a gap, or extends the last one.
    fn add_gap(&self, first: u64, bytes: u64, kind: GapKind, found: &mut MatchedMessages) {
        let gap = ByteGap {
            from: self.from,
            to: self.to,
            first_byte: i128::from(first) - i128::from(self.moved),
            bytes,
            kind,
        };
        match found.gaps.last_mut() {
            Some(last)
                if (last.from, last.to, last.kind) == (gap.from, gap.to, gap.kind)
                    && last.first_byte + i128::from(last.bytes) == gap.first_byte =>
            {
                last.bytes += bytes;
            }
            _ => found.gaps.push(gap),
        }
    }
}
