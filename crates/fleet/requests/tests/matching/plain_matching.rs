//! A plain version of `MatchedMessages::matched` for one connection, which compares every row with every other.

use luc_fleet_requests::{ByteDirection, MessageRow};

/// A range of bytes: the first and the one after the last.
type Range = (i128, i128);

/// An edge: the rows' places, and the bytes on the sender's count.
pub(crate) type PlainEdge = (usize, usize, Range);

/// Returns all edges of one direction. `shift` is added to the receiver's offsets.
pub(crate) fn edges(sends: &[MessageRow], receptions: &[MessageRow], shift: i64) -> Vec<PlainEdge> {
    let sends = ranges(sends, ByteDirection::Sent, 0);
    let receptions = ranges(receptions, ByteDirection::Received, shift);
    let mut edges = Vec::new();
    for (at_send, send) in &sends {
        for (at_reception, reception) in &receptions {
            let both = (send.0.max(reception.0), send.1.min(reception.1));
            if both.0 >= both.1 {
                continue;
            }
            let mut parts = vec![both];
            for (own, side) in [(at_send, &sends), (at_reception, &receptions)] {
                for (_, other) in side.iter().filter(|(at, _)| at != own) {
                    parts = parts.into_iter().flat_map(|part| without(part, *other)).collect();
                }
            }
            edges.extend(parts.into_iter().map(|part| (*at_send, *at_reception, part)));
        }
    }
    edges
}

/// Returns the bytes of each row of one way, each row once.
fn ranges(rows: &[MessageRow], way: ByteDirection, shift: i64) -> Vec<(usize, Range)> {
    let mut ranges = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let end = u128::from(row.first_byte) + u128::from(row.bytes);
        let moved = match way {
            ByteDirection::Sent => 0,
            ByteDirection::Received => i128::from(shift),
        };
        // Rows beyond 64 bits, also with the shift that keeps offsets from being negative, are damaged.
        let is_damaged = end + moved.max(0).unsigned_abs() > u128::from(u64::MAX);
        if row.bytes > 0 && row.way == way && !is_damaged && !rows[..at].contains(row) {
            ranges.push((at, (i128::from(row.first_byte) + moved, end as i128 + moved)));
        }
    }
    ranges
}

fn without(part: Range, other: Range) -> Vec<Range> {
    let before = (part.0, part.1.min(other.0));
    let after = (part.0.max(other.1), part.1);
    if other.1 <= part.0 || part.1 <= other.0 {
        return vec![part];
    }
    [before, after].into_iter().filter(|part| part.0 < part.1).collect()
}
