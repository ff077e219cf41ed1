//! Who claims which bytes of one direction: one sweep over the ends of all rows' ranges.

/// Bytes that a row covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Range {
    pub(super) first: u64,
    /// After the last byte; more than `first`.
    pub(super) end: u64,
    pub(super) is_received: bool,
    pub(super) row: usize,
}

/// Which rows of one side cover bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    Nobody,
    /// The row of this number.
    One(usize),
    /// Whose they are is not known.
    Several,
}

/// Successive bytes that the same rows cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) sent: Claim,
    pub(super) received: Claim,
}

/// The rows of one side that cover the byte where the sweep is.
#[derive(Debug, Default)]
struct Open {
    count: usize,
    /// Of their numbers: with one row that is its number.
    sum: usize,
}

impl Open {
    fn change(&mut self, is_begin: bool, row: usize) {
        if is_begin {
            self.count += 1;
            self.sum = self.sum.wrapping_add(row);
        } else {
            self.count -= 1;
            self.sum = self.sum.wrapping_sub(row);
        }
    }

    fn claim(&self) -> Claim {
        match self.count {
            0 => Claim::Nobody,
            1 => Claim::One(self.sum),
            _ => Claim::Several,
        }
    }
}

/// All bytes that any row covers, in order. Linear but for sorting.
pub(super) fn pieces(ranges: &[Range]) -> Vec<Piece> {
    let ends = |range: &Range| {
        [
            (range.first, true, range.is_received, range.row),
            (range.end, false, range.is_received, range.row),
        ]
    };
    let mut ends: Vec<_> = ranges.iter().flat_map(ends).collect();
    ends.sort_unstable();
    let mut pieces: Vec<Piece> = Vec::with_capacity(ends.len());
    let mut open = [Open::default(), Open::default()];
    let mut first = 0;
    for (at, is_begin, is_received, row) in ends {
        let [sent, received] = [open[0].claim(), open[1].claim()];
        if first < at && (sent, received) != (Claim::Nobody, Claim::Nobody) {
            match pieces.last_mut() {
                Some(last)
                    if last.end == first && (last.sent, last.received) == (sent, received) =>
                {
                    last.end = at;
                }
                _ => pieces.push(Piece { first, end: at, sent, received }),
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
        let range = |first, end, is_received, row| Range { first, end, is_received, row };
        let found = pieces(&[
            range(10, 20, false, 7),
            range(0, 10, false, 5),
            range(15, 30, false, 9),
            range(5, 12, true, 3),
            range(40, u64::MAX, true, 1),
        ]);
        let piece = |first, end, sent, received| Piece { first, end, sent, received };
        assert_eq!(
            found,
            [
                piece(0, 5, Claim::One(5), Claim::Nobody),
                piece(5, 10, Claim::One(5), Claim::One(3)),
                piece(10, 12, Claim::One(7), Claim::One(3)),
                piece(12, 15, Claim::One(7), Claim::Nobody),
                piece(15, 20, Claim::Several, Claim::Nobody),
                piece(20, 30, Claim::One(9), Claim::Nobody),
                piece(40, u64::MAX, Claim::Nobody, Claim::One(1)),
            ]
        );
        assert!(pieces(&[]).is_empty());
    }
}
