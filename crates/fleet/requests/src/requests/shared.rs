//! Requests and answers of an end whose threads ask at once: only the other end tells which answer is to whom.

use std::collections::BTreeSet;
use std::ops::Range;

use super::exchange::{Exchanges, Part, Shape};
use crate::messages::Side;
use crate::rows::{Message, Way};

/// The share of an end's exchanges that may be several ones by chance.
const FEW: f64 = 0.02;

/// The bytes of a request and of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) asked: Range<u64>,
    pub(super) answered: Option<Range<u64>>,
}

impl Exchanges {
    /// Adds those of an end on which several threads ask at once, whose peer has read and answered one after the other:
    /// by the bytes that the peer has seen, in order. What it has not read is one more request. Returns the number of
    /// the exchange that is the peer's, for each of these.
    pub(super) fn add_within(
        &mut self,
        rows: &[&Message],
        places: Range<usize>,
        asks: Way,
        closed_ns: Option<u64>,
        bounds: &[Bounds],
    ) -> Vec<Option<usize>> {
        let mut numbers: Vec<Option<usize>> = vec![None; bounds.len()];
        let mut unread = None;
        for place in places {
            let row = rows[place];
            if row.way == asks {
                let number = match asked_in(bounds, row.first_byte) {
                    Some(at) => &mut numbers[at],
                    None => &mut unread,
                };
                let Some(number) = *number else {
                    *number = Some(self.open(place, row, closed_ns));
                    continue;
                };
                self.all[number].ask(row);
                self.parts.push((place, number, Part::Asks));
                continue;
            }
            // One call may read several answers.
            let end = row.first_byte.saturating_add(row.bytes);
            let is_before = |one: &Bounds| {
                let answered = one.answered.as_ref();
                answered.is_some_and(|answered| answered.end <= row.first_byte)
            };
            let first = bounds.partition_point(is_before);
            let read = bounds.iter().zip(&numbers).skip(first);
            let read = read.take_while(|(one, _)| {
                let answered = one.answered.as_ref();
                answered.is_some_and(|answered| answered.start < end)
            });
            let read: Vec<usize> = read.filter_map(|(_, number)| *number).collect();
            for &number in &read {
                self.all[number].answer(Side::of(row));
            }
            self.parts.extend(read.first().map(|&number| (place, number, Part::Answers)));
        }
        numbers
    }

    /// Whether many of these exchanges of an end are several ones that the server works for at once: it reads the next
    /// before it has answered the one before, and then no order tells which answer is to which. `is_several` is asked
    /// with an exchange's shape and its place among these.
    pub(super) fn are_mixed(
        &self,
        numbers: Range<usize>,
        is_several: impl Fn(Shape, usize) -> bool,
    ) -> bool {
        let shapes = self.shapes[numbers.clone()].iter().enumerate();
        let several = shapes.filter(|&(at, &shape)| {
            shape.asking_rows > 1 && !shape.has_hole && is_several(shape, at)
        });
        several.count() as f64 > FEW * numbers.len() as f64
    }

    /// Notes of these exchanges that none is known to be what it seems.
    pub(super) fn doubt(&mut self, numbers: Range<usize>) {
        for exchange in &mut self.all[numbers] {
            exchange.sure_until_ns = 0;
        }
    }

    /// The bytes of an exchange as the other end counts them: what that sent is what this end received and the first of
    /// `shifts`, and what this end sent is what that received and the second.
    pub(super) fn bounds(&self, number: usize, shifts: [i64; 2]) -> Option<Bounds> {
        let exchange = self.all.get(number)?;
        let asked = exchange.first_byte..exchange.first_byte.checked_add(exchange.bytes)?;
        let moved = |bytes: &Range<u64>, by: i64| -> Option<Range<u64>> {
            Some(bytes.start.checked_add_signed(by)?..bytes.end.checked_add_signed(by)?)
        };
        let answered = self.answers.get(number)?.as_ref();
        let answered = answered.map(|bytes| moved(bytes, shifts[1].checked_neg()?));
        Some(Bounds { asked: moved(&asked, shifts[0])?, answered: answered.flatten() })
    }
}

/// Whether several threads ask before the first of them has an answer.
pub(super) fn is_shared(rows: &[&Message], asks: Way) -> bool {
    rows.windows(2).any(|pair| {
        let is_asked = pair.iter().all(|row| row.way == asks);
        is_asked && pair[0].thread != pair[1].thread
    })
}

/// Whether each request of the peer's begins with a row of this end's.
pub(super) fn are_begins(bounds: &[Bounds], rows: &[&Message], asks: Way) -> bool {
    let asked = rows.iter().filter(|row| row.way == asks);
    let begins: BTreeSet<u64> = asked.map(|row| row.first_byte).collect();
    bounds.iter().all(|one| begins.contains(&one.asked.start))
}

/// In which of these a byte is.
fn asked_in(bounds: &[Bounds], byte: u64) -> Option<usize> {
    let next = bounds.partition_point(|one| one.asked.start <= byte);
    let last = next.checked_sub(1)?;
    bounds[last].asked.contains(&byte).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Thread;
    use luc_fleet_clocks::HostId;

    const R: Way = Way::Received;
    const S: Way = Way::Sent;

    #[test]
    fn threads_that_share_a_connection_have_a_request_each() {
        // Thread 1 asks, thread 2 asks before the answer, and thread 1 again before the second one's answer. One call
        // reads the last two answers.
        let row = |at_ns, thread, way, first_byte, bytes| Message {
            host: HostId(0),
            at_ns,
            thread: Thread { id: thread, start_ns: 0 },
            process: 1,
            connection: 1,
            way,
            first_byte,
            bytes,
            token: None,
        };
        let rows = [
            row(10, 1, S, 1, 5),
            row(20, 2, S, 6, 5),
            row(30, 9, R, 1, 7),
            row(40, 1, S, 11, 5),
            row(50, 9, R, 8, 14),
            row(60, 2, S, 16, 5),
        ];
        let rows = rows.each_ref();
        let bounds = |first: u64, answer: u64| Bounds {
            asked: first..first + 5,
            answered: Some(answer..answer + 7),
        };
        let bounds = [bounds(1, 1), bounds(6, 8), bounds(11, 15)];
        assert!(is_shared(&rows, S));
        assert!(!is_shared(&rows[1..4], S));
        assert!(are_begins(&bounds, &rows, S));
        assert!(!are_begins(&bounds, &rows[1..], S));
        let mut found = Exchanges::default();
        found.add_within(&rows, 0..rows.len(), S, None, &bounds);
        found.finish();
        let plain: Vec<_> = found
            .all
            .iter()
            .map(|one| {
                (
                    one.asked.thread.id,
                    one.first_byte,
                    one.bytes,
                    one.answer.map(|answer| answer.last.at_ns),
                )
            })
            .collect();
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
        assert_eq!(found.parts.len(), rows.len());
    }
}
