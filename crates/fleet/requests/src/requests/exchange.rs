//! Requests and answers of one end, by direction and order alone.

use std::ops::Range;

use crate::host_rows::{ByteDirection, EndId, MessageRow, RowId};
use crate::messages::MessageSide;

/// A request and its answer, as one end saw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    pub end: EndId,
    /// Thread that sent or read the first bytes of the request, and when.
    pub asked: MessageSide,
    /// Offset of the request's first byte, as the end counts that direction.
    pub first_byte: u64,
    /// Bytes of the request.
    pub bytes: u64,
    pub answer: Option<ExchangeAnswer>,
    /// Token that names the request in its bytes, where they were looked at.
    pub token: Option<u64>,
    /// Time on the host's clock until which its thread works for it without doubt: lost rows may hide the begin of
    /// another request.
    pub(crate) sure_until_ns: u64,
    /// Whether several threads have sent it. Then it is several requests, and has no known cause.
    pub(crate) is_of_several: bool,
}

/// The answer of an [`Exchange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeAnswer {
    /// Thread that sent or read the first bytes.
    pub first: MessageSide,
    /// Thread that sent or read the last bytes.
    pub last: MessageSide,
}

impl Exchange {
    /// Adds more of the request.
    pub(super) fn ask(&mut self, row: &MessageRow) {
        self.bytes = self.bytes.saturating_add(row.bytes);
        self.token = self.token.or(row.token);
        self.is_of_several |= row.thread != self.asked.thread;
    }

    /// Adds some of the answer.
    pub(super) fn answer(&mut self, side: MessageSide) {
        let first = self.answer.map_or(side, |answer| answer.first);
        self.answer = Some(ExchangeAnswer { first, last: side });
    }
}

/// Index of an exchange in [`Exchanges::all`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExchangeId(pub(super) usize);

/// A row of an exchange.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExchangeRow {
    pub(super) row: RowId,
    pub(super) exchange: ExchangeId,
    /// Whether it has the first bytes of the request.
    pub(super) is_first: bool,
}

/// Evidence that an exchange is several ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExchangeShape {
    /// Number of rows of its request.
    pub(super) asking_rows: usize,
    /// Whether more than one thread answered it.
    pub(super) is_answered_by_several: bool,
    /// Whether a row is missing before one of its own, or after its last one.
    pub(super) has_hole: bool,
}

/// Exchanges of ends, in order of ends and bytes.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    pub(super) all: Vec<Exchange>,
    /// By exchange: bytes of the answer, as the end counts them.
    pub(super) answers: Vec<Option<Range<u64>>>,
    /// By exchange: evidence that it is several ones.
    pub(super) shapes: Vec<ExchangeShape>,
    pub(super) rows: Vec<ExchangeRow>,
}

impl Exchanges {
    /// Adds the exchanges of an end, whose rows are `of_end` in the order of their times. Bytes that go `asks` are
    /// requests; those of the other direction answer the last one. An answer to nothing, such as a server's greeting,
    /// belongs to no exchange. A FIN must not be among the rows.
    pub(super) fn add(
        &mut self,
        rows: &[&MessageRow],
        of_end: Range<usize>,
        asks: ByteDirection,
        closed_ns: Option<u64>,
    ) {
        // The byte that follows in each direction.
        let mut expected: [Option<u64>; 2] = [None, None];
        let mut current: Option<usize> = None;
        for id in of_end {
            let row = rows[id];
            let id = RowId(id);
            let expected = &mut expected[usize::from(row.way == ByteDirection::Sent)];
            let has_hole = expected.is_some_and(|expected| expected != row.first_byte);
            *expected = row.first_byte.checked_add(row.bytes);
            if row.way != asks {
                let Some(at) = current else { continue };
                let exchange = &mut self.all[at];
                if has_hole && exchange.answer.is_none() && self.shapes[at].asking_rows > 1 {
                    // The answer that is missing may be to the first of these rows: they are several requests.
                    exchange.sure_until_ns = 0;
                }
                let answered_by = exchange.answer.map(|answer| answer.last.thread);
                self.shapes[at].has_hole |= has_hole;
                self.shapes[at].is_answered_by_several |=
                    answered_by.is_some_and(|thread| thread != row.thread);
                exchange.answer(MessageSide::of(row));
                let bytes = row.first_byte..row.first_byte.saturating_add(row.bytes);
                let all = self.answers[at].get_or_insert(bytes.clone());
                *all = all.start.min(bytes.start)..all.end.max(bytes.end);
                self.note_row(id, ExchangeId(at), false);
                continue;
            }
            let last = current.map(|at| (at, &mut self.all[at]));
            if let Some((at, exchange)) = last {
                let Some(answer) = exchange.answer else {
                    exchange.ask(row);
                    self.shapes[at].asking_rows += 1;
                    self.shapes[at].has_hole |= has_hole;
                    self.note_row(id, ExchangeId(at), false);
                    continue;
                };
                if has_hole {
                    // What was lost may be another request, that later parts of this answer belong to.
                    exchange.sure_until_ns = exchange.sure_until_ns.min(answer.first.at_ns);
                    self.shapes[at].has_hole = true;
                }
            }
            current = Some(self.open(id, row, closed_ns).0);
        }
    }

    pub(super) fn note_row(&mut self, row: RowId, exchange: ExchangeId, is_first: bool) {
        self.rows.push(ExchangeRow { row, exchange, is_first });
    }

    /// Begins an exchange with its first row.
    pub(super) fn open(
        &mut self,
        id: RowId,
        row: &MessageRow,
        closed_ns: Option<u64>,
    ) -> ExchangeId {
        let exchange = ExchangeId(self.all.len());
        self.note_row(id, exchange, true);
        self.answers.push(None);
        self.shapes.push(ExchangeShape {
            asking_rows: 1,
            is_answered_by_several: false,
            has_hole: false,
        });
        self.all.push(Exchange {
            end: row.end(),
            asked: MessageSide::of(row),
            first_byte: row.first_byte,
            bytes: row.bytes,
            answer: None,
            token: row.token,
            sure_until_ns: closed_ns.unwrap_or(u64::MAX),
            is_of_several: false,
        });
        exchange
    }

    /// Ends the time of each request with its answer.
    pub(super) fn finish(&mut self) {
        for exchange in &mut self.all {
            if let Some(answer) = exchange.answer {
                exchange.sure_until_ns = exchange.sure_until_ns.min(answer.last.at_ns);
            }
        }
    }
}

/// Leaves out the last row of an end of TCP, if that is the one byte of a FIN: received, after all that is sent.
pub(super) fn without_fin(
    rows: &[&MessageRow],
    of_end: Range<usize>,
    asks: ByteDirection,
) -> Range<usize> {
    let Some((last, before)) = rows[of_end.clone()].split_last() else {
        return of_end;
    };
    let is_after_an_answer = before.last().is_none_or(|row| row.way != asks);
    let is_fin = last.way == ByteDirection::Received && last.bytes == 1 && is_after_an_answer;
    of_end.start..of_end.end - usize::from(is_fin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rows::message;

    /// An exchange's first byte, bytes, times of its answer, and time until which it is sure.
    type Plain = (u64, u64, Option<(u64, u64)>, u64);

    /// Returns the exchanges of rows `(way, first byte, bytes)`, 10 ns apart.
    fn exchanges(asks: ByteDirection, rows: &[(ByteDirection, u64, u64)]) -> Vec<Plain> {
        let rows: Vec<MessageRow> = rows
            .iter()
            .enumerate()
            .map(|(at, &(way, first, bytes))| message(1, 10 * at as u64, way, first, bytes))
            .collect();
        let rows: Vec<&MessageRow> = rows.iter().collect();
        let mut found = Exchanges::default();
        let of_end = without_fin(&rows, 0..rows.len(), asks);
        found.add(&rows, of_end, asks, None);
        found.finish();
        let answer = |answer: ExchangeAnswer| (answer.first.at_ns, answer.last.at_ns);
        let plain =
            |one: &Exchange| (one.first_byte, one.bytes, one.answer.map(answer), one.sure_until_ns);
        found.all.iter().map(plain).collect()
    }

    const R: ByteDirection = ByteDirection::Received;
    const S: ByteDirection = ByteDirection::Sent;

    #[test]
    fn directions_alternate() {
        // A greeting, a request in two reads, an answer in two writes, another request without one, and a FIN.
        let rows = [(S, 1, 9), (R, 1, 5), (R, 6, 5), (S, 10, 7), (S, 17, 7), (R, 11, 3)];
        let found = exchanges(R, &rows);
        assert_eq!(found, [(1, 10, Some((30, 40)), 40), (11, 3, None, u64::MAX)]);
        let with_fin = [&rows[..5], &[(R, 11, 1)]].concat();
        assert_eq!(exchanges(R, &with_fin), [(1, 10, Some((30, 40)), 40)]);
        // At the client a FIN is no part of the answer.
        let client = [(S, 1, 5), (R, 1, 7), (R, 8, 1)];
        assert_eq!(exchanges(S, &client), [(1, 5, Some((10, 10)), 10)]);
    }

    #[test]
    fn holes_make_requests_less_sure() {
        // The second request's row is lost, so its answer seems to be the first one's.
        let lost_request = [(R, 1, 5), (S, 1, 5), (S, 6, 5), (R, 11, 5), (S, 11, 5)];
        assert_eq!(
            exchanges(R, &lost_request),
            [(1, 5, Some((10, 20)), 10), (11, 5, Some((40, 40)), 40)]
        );
        // The first answer's row is lost, so both requests seem to be one.
        let lost_answer = [(R, 1, 5), (S, 1, 5), (R, 6, 5), (R, 11, 5), (S, 11, 5)];
        assert_eq!(
            exchanges(R, &lost_answer),
            [(1, 5, Some((10, 10)), 10), (6, 10, Some((40, 40)), 0)]
        );
    }
}
