//! Calls in a row that are as many as the requests around them lack.

use std::ops::RangeInclusive;

use super::{FEWEST, HandOver, MOST, RIGHT, Regular};

impl Regular<'_> {
    /// Calls in a row that are as many as the requests around them lack, if that tells the known ones right.
    pub(super) fn by_order(&mut self) -> Vec<(usize, usize, HandOver)> {
        if !self.tells_known_ones() {
            return Vec::new();
        }
        let known: Vec<(usize, usize)> = self.known();
        let mut found = Vec::new();
        for pair in known.windows(2) {
            let Some(missing) = self.missing_between(pair[0], pair[1]) else {
                continue;
            };
            let places = pair[0].0 + 1..pair[1].0;
            let told: Vec<(usize, usize)> = places.zip(missing).collect();
            if told.iter().all(|&(place, rank)| self.is_open(rank, &self.calls[place])) {
                for (place, rank) in told {
                    self.note(place, rank);
                    found.push((place, rank, HandOver::Queue));
                }
            }
        }
        found
    }

    /// The ranks of the calls between two known ones, where the requests from one's to the other's lack as many.
    fn missing_between(
        &self,
        (before, first): (usize, usize),
        (after, last): (usize, usize),
    ) -> Option<Vec<usize>> {
        let gap = after - before - 1;
        let is_good = (1..=MOST).contains(&gap) && first <= last && last - first <= MOST;
        let missing = is_good.then(|| self.missing(first..=last))?;
        (missing.len() == gap).then_some(missing)
    }

    fn missing(&self, ranks: RangeInclusive<usize>) -> Vec<usize> {
        let of_rank = |rank: usize| std::iter::repeat_n(rank, self.lacks(rank));
        ranks.flat_map(of_rank).take(MOST + 1).collect()
    }

    /// Whether the order tells nearly all known calls right, each as if it were not known.
    fn tells_known_ones(&mut self) -> bool {
        let (mut told, mut right) = (0, 0);
        for three in self.known().windows(3) {
            let [before, (place, rank), after] = [three[0], three[1], three[2]];
            self.counts[rank] -= 1;
            let missing = self.missing_between(before, after);
            self.counts[rank] += 1;
            if let Some(missing) = missing {
                told += 1;
                right += usize::from(missing[place - before.0 - 1] == rank);
            }
        }
        told >= FEWEST && right as f64 >= RIGHT * told as f64
    }
}
