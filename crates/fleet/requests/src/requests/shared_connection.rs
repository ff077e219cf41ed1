//! Exchanges of an end whose threads ask at once: only the other end tells the request of each answer.

use std::collections::BTreeSet;
use std::ops::Range;

use super::exchange::{ExchangeId, ExchangeShape, Exchanges};
use crate::host_rows::{ByteDirection, MessageRow, RowId};
use crate::messages::MessageSide;

/// Maximum share of an end's exchanges that may be several ones by chance.
const MAX_SEVERAL_SHARE: f64 = 0.02;

/// Bytes of a request and of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExchangeBytes {
    pub(super) asked: Range<u64>,
    pub(super) answered: Option<Range<u64>>,
}

impl Exchanges {
    /// Adds the exchanges of an end on which several threads ask at once. Its peer read and answered one after the
    /// other. `of_peer` are the peer's exchanges in order. Bytes that it has not read are one more request. Returns
    /// the exchange here for each of the peer's.
    pub(super) fn add_within(
        &mut self,
        rows: &[&MessageRow],
        of_end: Range<usize>,
        asks: ByteDirection,
        closed_ns: Option<u64>,
        of_peer: &[ExchangeBytes],
    ) -> Vec<Option<ExchangeId>> {
        let mut exchanges: Vec<Option<ExchangeId>> = vec![None; of_peer.len()];
        let mut unread = None;
        for id in of_end {
            let row = rows[id];
            let id = RowId(id);
            if row.way == asks {
                let exchange = match find_asked(of_peer, row.first_byte) {
                    Some(at) => &mut exchanges[at],
                    None => &mut unread,
                };
                let Some(exchange) = *exchange else {
                    *exchange = Some(self.open(id, row, closed_ns));
                    continue;
                };
                self.all[exchange.0].ask(row);
                self.note_row(id, exchange, false);
                continue;
            }
            // One call may read several answers.
            let end = row.first_byte.saturating_add(row.bytes);
            let first = of_peer.partition_point(|one| {
                one.answered.as_ref().is_some_and(|bytes| bytes.end <= row.first_byte)
            });
            let read: Vec<ExchangeId> = of_peer
                .iter()
                .zip(&exchanges)
                .skip(first)
                .take_while(|(one, _)| one.answered.as_ref().is_some_and(|bytes| bytes.start < end))
                .filter_map(|(_, exchange)| *exchange)
                .collect();
            for exchange in &read {
                self.all[exchange.0].answer(MessageSide::of(row));
            }
            if let Some(&first) = read.first() {
                self.note_row(id, first, false);
            }
        }
        exchanges
    }

    /// Whether many of an end's exchanges are several ones that the server works for at once. It then reads the next
    /// before it has answered the one before. No order tells which answer is to which. `is_several` is called with an
    /// exchange's shape and its index in `exchanges`.
    pub(super) fn are_mixed(
        &self,
        exchanges: Range<usize>,
        is_several: impl Fn(ExchangeShape, usize) -> bool,
    ) -> bool {
        let shapes = self.shapes[exchanges.clone()].iter().enumerate();
        let several = shapes.filter(|&(at, &shape)| {
            shape.asking_rows > 1 && !shape.has_hole && is_several(shape, at)
        });
        several.count() as f64 > MAX_SEVERAL_SHARE * exchanges.len() as f64
    }

    /// Notes that these exchanges may not be what they seem.
    pub(super) fn doubt(&mut self, exchanges: Range<usize>) {
        for exchange in &mut self.all[exchanges] {
            exchange.sure_until_ns = 0;
        }
    }

    /// Returns the bytes of an exchange as the other end counts them. An offset that it sent is one that this end
    /// received plus the first of `shifts`. An offset that this end sent is one that it received plus the second.
    pub(super) fn bytes_at_peer(&self, id: ExchangeId, shifts: [i64; 2]) -> Option<ExchangeBytes> {
        let exchange = self.all.get(id.0)?;
        let asked = exchange.first_byte..exchange.first_byte.checked_add(exchange.bytes)?;
        let moved = |bytes: &Range<u64>, by: i64| -> Option<Range<u64>> {
            Some(bytes.start.checked_add_signed(by)?..bytes.end.checked_add_signed(by)?)
        };
        let answered = self.answers.get(id.0)?.as_ref();
        let answered = answered.map(|bytes| moved(bytes, shifts[1].checked_neg()?));
        Some(ExchangeBytes { asked: moved(&asked, shifts[0])?, answered: answered.flatten() })
    }
}

/// Whether several threads ask before the first of them has an answer.
pub(super) fn is_shared(rows: &[&MessageRow], asks: ByteDirection) -> bool {
    rows.windows(2).any(|pair| {
        let is_asked = pair.iter().all(|row| row.way == asks);
        is_asked && pair[0].thread != pair[1].thread
    })
}

/// Whether each exchange of the peer begins with a row of this end.
pub(super) fn are_begins(
    of_peer: &[ExchangeBytes],
    rows: &[&MessageRow],
    asks: ByteDirection,
) -> bool {
    let asked = rows.iter().filter(|row| row.way == asks);
    let begins: BTreeSet<u64> = asked.map(|row| row.first_byte).collect();
    of_peer.iter().all(|one| begins.contains(&one.asked.start))
}

/// Finds the index of the exchange whose request has a byte.
fn find_asked(of_peer: &[ExchangeBytes], byte: u64) -> Option<usize> {
    let next = of_peer.partition_point(|one| one.asked.start <= byte);
    let last = next.checked_sub(1)?;
    of_peer[last].asked.contains(&byte).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::Exchange;
    use crate::test_rows::message;

    const R: ByteDirection = ByteDirection::Received;
    const S: ByteDirection = ByteDirection::Sent;

    #[test]
    fn threads_that_share_a_connection_have_a_request_each() {
        // Thread 1 asks, thread 2 asks before the answer, and thread 1 again before the second one's answer. One call
        // reads the last two answers.
        let rows = [
            message(1, 10, S, 1, 5),
            message(2, 20, S, 6, 5),
            message(9, 30, R, 1, 7),
            message(1, 40, S, 11, 5),
            message(9, 50, R, 8, 14),
            message(2, 60, S, 16, 5),
        ];
        let rows = rows.each_ref();
        let bytes = |first: u64, answer: u64| ExchangeBytes {
            asked: first..first + 5,
            answered: Some(answer..answer + 7),
        };
        let of_peer = [bytes(1, 1), bytes(6, 8), bytes(11, 15)];
        assert!(is_shared(&rows, S));
        assert!(!is_shared(&rows[1..4], S));
        assert!(are_begins(&of_peer, &rows, S));
        assert!(!are_begins(&of_peer, &rows[1..], S));
        let mut found = Exchanges::default();
        found.add_within(&rows, 0..rows.len(), S, None, &of_peer);
        found.finish();
        let plain = |one: &Exchange| {
            let answered_ns = one.answer.map(|answer| answer.last.at_ns);
            (one.asked.thread.id, one.first_byte, one.bytes, answered_ns)
        };
        let plain: Vec<_> = found.all.iter().map(plain).collect();
        assert_eq!(
            plain,
            [
                (1, 1, 5, Some(30)),
                (2, 6, 5, Some(50)),
                (1, 11, 5, Some(50)),
                // The peer has not read it.
                (2, 16, 5, None),
            ]
        );
        assert_eq!(found.rows.len(), rows.len());
    }
}
