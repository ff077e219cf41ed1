//! Rows by thread, without a copy of them.

use std::cmp::Ordering;

use super::row::Row;

/// The places of rows, in a group for each thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    /// One group after the other.
    places: Vec<u32>,
    /// Where the group of each thread's number begins, and where the last one ends.
    begins: Vec<u32>,
}

impl Groups {
    /// Of rows, of which there are fewer than 2^32. `whose` says in which thread's group a row is, if in any; `order` in
    /// which order two places of a group are.
    pub(super) fn new(
        threads: usize,
        rows: &[Row],
        whose: impl Fn(&Row) -> Option<u32>,
        order: impl Fn(u32, u32) -> Ordering,
    ) -> Self {
        let mut begins = vec![0_u32; threads + 1];
        for thread in rows.iter().filter_map(&whose) {
            begins[thread as usize + 1] += 1;
        }
        for thread in 0..threads {
            begins[thread + 1] += begins[thread];
        }
        let all = begins.last().copied().unwrap_or_default();
        let mut places = vec![0_u32; all as usize];
        let mut next = begins.clone();
        for (row, place) in rows.iter().zip(0..) {
            if let Some(thread) = whose(row) {
                let next = &mut next[thread as usize];
                places[*next as usize] = place;
                *next += 1;
            }
        }
        let mut groups = Self { places, begins };
        for thread in 0..threads {
            let (begin, end) = (groups.begins[thread], groups.begins[thread + 1]);
            // Mostly they came in this order.
            groups.places[begin as usize..end as usize].sort_unstable_by(|a, b| order(*a, *b));
        }
        groups
    }

    /// The group of a thread.
    pub(super) fn of(&self, thread: u32) -> &[u32] {
        let (begin, end) = (self.begins[thread as usize], self.begins[thread as usize + 1]);
        &self.places[begin as usize..end as usize]
    }

    /// The numbers of all pairs of rows that follow each other in a group.
    pub(super) fn pairs(&self) -> impl Iterator<Item = u32> {
        let groups = self.begins.windows(2);
        groups.flat_map(|group| group[0]..group[1].saturating_sub(1).max(group[0]))
    }

    /// The rows of such a pair.
    pub(super) fn pair(&self, number: u32) -> [u32; 2] {
        [self.places[number as usize], self.places[number as usize + 1]]
    }
}
