//! Which sends fed which receptions.

mod claims;

use luc_fleet_clocks::HostId;

use crate::connections::{Connections, PairEvidence};
use crate::rows::{EndId, Message, Thread, ThreadId, Way};
use claims::{Claim, Range, pieces};

/// Where and when bytes went through a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Side {
    pub host: HostId,
    /// The thread that made the call.
    pub thread: Thread,
    pub process: u32,
    /// When, CLOCK_MONOTONIC of that host ([`Message::at_ns`]).
    pub at_ns: u64,
}

impl Side {
    pub(crate) fn of(row: &Message) -> Self {
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
    /// The first of these bytes, an offset of the sender's.
    pub first_byte: u64,
    pub bytes: u64,
    pub sent: Side,
    pub received: Side,
}

/// Why bytes are on no edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GapKind {
    /// The sender has no row of them: lost, or sent before its trace began.
    NoSend,
    /// The receiver has no row of them: lost, not read, or read after its trace ended.
    NoReception,
    /// Several sends claim them.
    SeveralSends,
    /// Several receptions claim them.
    SeveralReceptions,
    /// The last byte that was received, one after the last that was sent: a FIN, which counts as one.
    Fin,
}

/// Bytes of one direction that are on no edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gap {
    pub from: EndId,
    pub to: EndId,
    /// The first of these bytes, an offset of the sender's; negative before its origin.
    pub first_byte: i128,
    pub bytes: u64,
    pub kind: GapKind,
}

/// Rows that take no part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The same row once more.
    pub duplicates: u64,
    /// No bytes: a read at the end of the stream.
    pub empty: u64,
    /// Offsets beyond what 64 bits hold: the rows are damaged.
    pub beyond: u64,
    /// Of ends without a peer.
    pub unpaired: u64,
}

/// The messages between paired ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Messages {
    /// In order of pairs, directions and bytes.
    pub edges: Vec<MessageEdge>,
    /// What is missing, in the same order.
    pub gaps: Vec<Gap>,
    /// How many rows take no part.
    pub left_out: LeftOut,
}

impl Messages {
    /// Matches sends and receptions, in any order, by the bytes of each direction of each pair. What several rows of
    /// one side claim is on no edge. Retransmission has no part in this, since a program reads each byte once.
    /// Linear but for sorting.
    #[must_use]
    pub fn matched(connections: &Connections, rows: &[Message]) -> Self {
        let mut found = Self::default();
        let places = connections.places();
        let mut placed: Vec<(usize, Range)> = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            if row.bytes == 0 {
                found.left_out.empty += 1;
                continue;
            }
            let Some(&(pair, side)) = places.get(&row.end()) else {
                found.left_out.unpaired += 1;
                continue;
            };
            // Direction 0 is from the first end to the second.
            let direction = side ^ usize::from(row.way == Way::Received);
            match range(at, row, connections.pairs[pair].shifts[direction]) {
                Some(range) => placed.push((2 * pair + direction, range)),
                None => found.left_out.beyond += 1,
            }
        }
        placed.sort_unstable_by(|(a_stream, a), (b_stream, b)| {
            let content = |range: &Range| (range.is_received, range.first, rows[range.row]);
            (a_stream, content(a)).cmp(&(b_stream, content(b)))
        });
        let count = placed.len();
        placed.dedup_by(|(a_stream, a), (b_stream, b)| {
            a_stream == b_stream && rows[a.row] == rows[b.row]
        });
        found.left_out.duplicates = (count - placed.len()) as u64;
        for stream in placed.chunk_by(|a, b| a.0 == b.0) {
            let (pair, direction) = (&connections.pairs[stream[0].0 / 2], stream[0].0 % 2);
            let direction = Direction {
                from: pair.ends[direction],
                to: pair.ends[1 - direction],
                moved: moved(Way::Sent, pair.shifts[direction]),
                has_fin: pair.evidence != PairEvidence::Host,
            };
            let ranges: Vec<Range> = stream.iter().map(|(_, range)| *range).collect();
            direction.add(&ranges, rows, &mut found);
        }
        found
    }
}

/// What is added to offsets of one side so that both sides have one scale and no offset is negative.
fn moved(way: Way, shift: i64) -> u64 {
    match way {
        Way::Sent => shift.min(0).unsigned_abs(),
        Way::Received => shift.max(0).unsigned_abs(),
    }
}

/// A row's bytes on the scale of both sides; `None` beyond 64 bits.
fn range(at: usize, row: &Message, shift: i64) -> Option<Range> {
    let first = row.first_byte.checked_add(moved(row.way, shift))?;
    Some(Range {
        first,
        end: first.checked_add(row.bytes)?,
        is_received: row.way == Way::Received,
        row: at,
    })
}

/// One direction of a connection.
struct Direction {
    from: EndId,
    to: EndId,
    /// Offsets on the scale of both sides, less this, are the sender's.
    moved: u64,
    /// The end of the stream may count as a byte.
    has_fin: bool,
}

impl Direction {
    fn add(&self, ranges: &[Range], rows: &[Message], found: &mut Messages) {
        let last = |is_received| {
            let side = ranges.iter().filter(|range| range.is_received == is_received);
            side.map(|range| range.end).max()
        };
        let (last_sent, last_received) = (last(false), last(true));
        for piece in pieces(ranges) {
            let bytes = piece.end - piece.first;
            let is_fin = self.has_fin
                && bytes == 1
                && last_sent == Some(piece.first)
                && last_received == Some(piece.end);
            let kind = match (piece.sent, piece.received) {
                (Claim::One(sent), Claim::One(received)) => {
                    found.edges.push(MessageEdge {
                        from: self.from,
                        to: self.to,
                        first_byte: piece.first - self.moved,
                        bytes,
                        sent: Side::of(&rows[sent]),
                        received: Side::of(&rows[received]),
                    });
                    continue;
                }
                (Claim::Several, _) => GapKind::SeveralSends,
                (_, Claim::Several) => GapKind::SeveralReceptions,
                (Claim::One(_), Claim::Nobody) => GapKind::NoReception,
                (Claim::Nobody, _) if is_fin => GapKind::Fin,
                (Claim::Nobody, _) => GapKind::NoSend,
            };
            self.gap(piece.first, bytes, kind, found);
        }
    }

    /// Adds a gap, to the last one if it goes on.
    fn gap(&self, first: u64, bytes: u64, kind: GapKind, found: &mut Messages) {
        let gap = Gap {
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
