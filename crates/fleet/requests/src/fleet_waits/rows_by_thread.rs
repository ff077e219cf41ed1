//! Rows by thread, without a copy of them.

use std::cmp::Ordering;

use super::compact_wait::{CompactWait, HostThread};

/// Index of a row of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowIndex(pub(super) u32);

/// Indices of rows, in a group for each thread.
#[derive(Debug, Clone, Default)]
pub(super) struct RowsByThread {
    /// One group after the other.
    rows: Vec<RowIndex>,
    /// By thread: the begin of its group in `rows`; and the end of the last group.
    begins: Vec<u32>,
}

impl RowsByThread {
    /// Groups fewer than 2^32 rows. `thread_of` returns the thread whose group a row is in, if any. `order` compares
    /// two rows of a group.
    pub(super) fn new(
        threads: usize,
        rows: &[CompactWait],
        thread_of: impl Fn(&CompactWait) -> Option<HostThread>,
        order: impl Fn(RowIndex, RowIndex) -> Ordering,
    ) -> Self {
        let mut begins = vec![0_u32; threads + 1];
        for thread in rows.iter().filter_map(&thread_of) {
            begins[thread.0 as usize + 1] += 1;
        }
        for thread in 0..threads {
            begins[thread + 1] += begins[thread];
        }
        let all = begins.last().copied().unwrap_or_default();
        let mut grouped = vec![RowIndex(0); all as usize];
        let mut next = begins.clone();
        for (row, index) in rows.iter().zip((0..).map(RowIndex)) {
            if let Some(thread) = thread_of(row) {
                let next = &mut next[thread.0 as usize];
                grouped[*next as usize] = index;
                *next += 1;
            }
        }
        let mut groups = Self { rows: grouped, begins };
        for thread in 0..threads {
            let (begin, end) = (groups.begins[thread], groups.begins[thread + 1]);
            // Mostly they came in this order.
            groups.rows[begin as usize..end as usize].sort_unstable_by(|a, b| order(*a, *b));
        }
        groups
    }

    /// Returns the group of a thread.
    pub(super) fn of(&self, thread: HostThread) -> &[RowIndex] {
        let thread = thread.0 as usize;
        let (begin, end) = (self.begins[thread], self.begins[thread + 1]);
        &self.rows[begin as usize..end as usize]
    }
}
