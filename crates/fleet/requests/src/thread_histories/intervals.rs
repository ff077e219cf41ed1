//! Intervals of time, and a search for those that contain a time.

use std::ops::{ControlFlow, Range};

/// An interval of time, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval<T> {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) what: T,
}

/// Many intervals as a tree whose nodes are the middles of ranges (Cormen et al., *Introduction to Algorithms*,
/// interval trees). One that lasts long does not make a search among the others longer.
#[derive(Debug, Clone)]
pub(crate) struct Intervals<T> {
    /// In the order of their begins.
    all: Vec<Interval<T>>,
    /// By index: the latest end in the range whose middle it is.
    latest_ns: Vec<u64>,
}

impl<T: Ord> Intervals<T> {
    pub(crate) fn new(mut all: Vec<Interval<T>>) -> Self {
        all.sort_unstable();
        let mut intervals = Self { latest_ns: vec![0; all.len()], all };
        intervals.note_latest(0..intervals.all.len());
        intervals
    }

    /// Notes the latest end in a range and in all ranges below it.
    fn note_latest(&mut self, range: Range<usize>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let middle = range.start.midpoint(range.end);
        let before_ns = self.note_latest(range.start..middle);
        let after_ns = self.note_latest(middle + 1..range.end);
        let latest_ns = self.all[middle].to_ns.max(before_ns).max(after_ns);
        self.latest_ns[middle] = latest_ns;
        latest_ns
    }

    /// Visits the intervals that have a time between two times, both included. They come in the order of their
    /// begins, until `visit` breaks.
    pub(crate) fn visit(
        &self,
        [first_ns, last_ns]: [u64; 2],
        mut visit: impl FnMut(&Interval<T>) -> ControlFlow<()>,
    ) {
        let _ = self.visit_range(0..self.all.len(), [first_ns, last_ns], &mut visit);
    }

    fn visit_range(
        &self,
        range: Range<usize>,
        between_ns: [u64; 2],
        visit: &mut impl FnMut(&Interval<T>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let [first_ns, last_ns] = between_ns;
        let middle = range.start.midpoint(range.end);
        if range.is_empty() || self.latest_ns[middle] < first_ns {
            return ControlFlow::Continue(());
        }
        self.visit_range(range.start..middle, between_ns, visit)?;
        let one = &self.all[middle];
        if one.from_ns > last_ns {
            return ControlFlow::Continue(());
        }
        if one.to_ns >= first_ns {
            visit(one)?;
        }
        self.visit_range(middle + 1..range.end, between_ns, visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn met(intervals: &Intervals<u8>, between_ns: [u64; 2], most: usize) -> Vec<Interval<u8>> {
        let mut met = Vec::new();
        intervals.visit(between_ns, |one| {
            met.push(*one);
            if met.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        met
    }

    proptest! {
        #[test]
        fn all_that_meet_are_visited_in_order(
            all in prop::collection::vec((0_u64..60, 0_u64..60, any::<u8>()), 0..40),
            first_ns in 0_u64..60,
            length_ns in 0_u64..30,
            most in 1_usize..5,
        ) {
            let interval = |(from_ns, to_ns, what)| Interval { from_ns, to_ns, what };
            let mut all: Vec<Interval<u8>> = all.into_iter().map(interval).collect();
            all.sort_unstable();
            let last_ns = first_ns + length_ns;
            let meets = |one: &&Interval<u8>| one.from_ns <= last_ns && first_ns <= one.to_ns;
            let expected: Vec<Interval<u8>> = all.iter().filter(meets).copied().collect();
            let intervals = Intervals::new(all);
            let between_ns = [first_ns, last_ns];
            prop_assert_eq!(&met(&intervals, between_ns, usize::MAX), &expected);
            let few = expected.len().min(most);
            prop_assert_eq!(&met(&intervals, between_ns, most), &expected[..few]);
        }
    }
}
