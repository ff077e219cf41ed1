//! Rows that cover the bytes of one direction: one sweep over the ends of all rows' ranges.

use crate::host_rows::RowId;

/// Bytes that a row covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowBytes {
    pub(super) first: u64,
    /// Offset after the last byte; more than `first`.
    pub(super) end: u64,
    pub(super) is_received: bool,
    pub(super) row: RowId,
}

/// Rows of one side that cover bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteClaim {
    Nobody,
    One(RowId),
    Several,
}

/// Successive bytes that the same rows cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClaimedBytes {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) sent: ByteClaim,
    pub(super) received: ByteClaim,
}

/// The rows of one side that cover the byte where the sweep is.
#[derive(Debug, Default)]
struct Open {
    count: usize,
    /// Sum of their indices: with one row that is its index.
    sum: usize,
}

impl Open {
    fn change(&mut self, is_begin: bool, RowId(row): RowId) {
        if is_begin {
            self.count += 1;
            self.sum = self.sum.wrapping_add(row);
        } else {
            self.count -= 1;
            self.sum = self.sum.wrapping_sub(row);
        }
    }

    fn claim(&self) -> ByteClaim {
        match self.count {
            0 => ByteClaim::Nobody,
            1 => ByteClaim::One(RowId(self.sum)),
            _ => ByteClaim::Several,
        }
    }
}

/// Returns all bytes that any row covers, in order. Takes linear time but for sorting.
pub(super) fn find_pieces(ranges: &[RowBytes]) -> Vec<ClaimedBytes> {
    let ends = |range: &RowBytes| {
        [
            (range.first, true, range.is_received, range.row),
            (range.end, false, range.is_received, range.row),
        ]
    };
    let mut ends: Vec<_> = ranges.iter().flat_map(ends).collect();
    ends.sort_unstable();
    let mut pieces: Vec<ClaimedBytes> = Vec::with_capacity(ends.len());
    let mut open = [Open::default(), Open::default()];
    let mut first = 0;
    for (at, is_begin, is_received, row) in ends {
        let [sent, received] = [open[0].claim(), open[1].claim()];
        if first < at && (sent, received) != (ByteClaim::Nobody, ByteClaim::Nobody) {
            match pieces.last_mut() {
                Some(last)
                    if last.end == first && (last.sent, last.received) == (sent, received) =>
                {
                    last.end = at;
                }
                _ => pieces.push(ClaimedBytes { first, end: at, sent, received }),
            }
        }
        first = at;
        open[usize::from(is_received)].change(is_begin, row);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_its_rows() {
        let range =
            |first, end, is_received, row| RowBytes { first, end, is_received, row: RowId(row) };
        let one = |row| ByteClaim::One(RowId(row));
        let found = find_pieces(&[
            range(10, 20, false, 7),
            range(0, 10, false, 5),
            range(15, 30, false, 9),
            range(5, 12, true, 3),
            range(40, u64::MAX, true, 1),
        ]);
        let piece = |first, end, sent, received| ClaimedBytes { first, end, sent, received };
        assert_eq!(
            found,
            [
                piece(0, 5, one(5), ByteClaim::Nobody),
                piece(5, 10, one(5), one(3)),
                piece(10, 12, one(7), one(3)),
                piece(12, 15, one(7), ByteClaim::Nobody),
                piece(15, 20, ByteClaim::Several, ByteClaim::Nobody),
                piece(20, 30, one(9), ByteClaim::Nobody),
                piece(40, u64::MAX, ByteClaim::Nobody, one(1)),
            ]
        );
        assert!(find_pieces(&[]).is_empty());
    }
}
