//! Sums that the programs keep in pairs of maps: while one of a pair is filled, the other is emptied.

use std::collections::HashMap;

use libbpf_rs::{MapCore, MapFlags};
use luc_events::event_kinds::{DataDirection, SummarizedKind};
use luc_events::tables::{FileData, JournalHandle, SummaryCount};
use luc_events::{Cgroup, Dev, Inode, Pid, Tgid, Transaction, WaitCause};

use crate::ProbeError;
use crate::load_programs::RecorderPrograms;
use crate::preemption_guard::PreemptionGuard;
use crate::ring_records::{DataKey, DataSum, HandleKey, HandleSum, Plain, SummaryKey, SummarySum};

/// Entries that one system call takes out.
const BATCH: u32 = 8192;

/// The map of each pair that is being filled.
#[derive(Debug, Default)]
pub(crate) struct FilledMap(u32);

impl FilledMap {
    /// Returns the map of a pair that is not being filled now.
    pub(crate) fn idle<'a>(&self, pair: [&'a str; 2]) -> &'a str {
        pair[(self.0 as usize + 1) & 1]
    }

    /// Makes the programs fill the other map of each pair. A program that still runs may add to the old map for some
    /// microseconds, so empty that a while later.
    pub(crate) fn turn(&mut self, programs: &RecorderPrograms) -> Result<(), ProbeError> {
        self.0 ^= 1;
        let _unpreempted = PreemptionGuard::begin();
        programs
            .map(".data.epoch")?
            .update(&0u32.to_ne_bytes(), &self.0.to_ne_bytes(), MapFlags::ANY)
            .map_err(ProbeError::refused("changing maps"))
    }
}

pub(crate) const HANDLES: [&str; 2] = ["handles_0", "handles_1"];
pub(crate) const DATA: [&str; 2] = ["data_0", "data_1"];
pub(crate) const SUMMARY: [&str; 2] = ["summary_0", "summary_1"];

/// Takes everything out of a map.
pub(crate) fn drain<K: Plain, V: Plain>(
    map: &impl MapCore,
    mut take: impl FnMut(K, V) -> Result<(), ProbeError>,
) -> Result<(), ProbeError> {
    let unpreempted = PreemptionGuard::begin();
    let entries: Vec<_> = map
        .lookup_and_delete_batch(BATCH, MapFlags::ANY, MapFlags::ANY)
        .map_err(ProbeError::refused("reading its maps"))?
        .collect();
    drop(unpreempted);
    for (key, value) in entries {
        if let (Some(key), Some(value)) = (K::read(&key), V::read(&value)) {
            take(key, value)?;
        }
    }
    Ok(())
}

pub(crate) fn handle(key: &HandleKey, sum: &HandleSum) -> JournalHandle {
    JournalHandle {
        at_ns: sum.at_ns,
        dev: Dev(key.dev),
        transaction: Transaction(key.transaction),
        thread: Pid(key.thread),
        process: Tgid(sum.process),
        cgroup: Cgroup(sum.cgroup),
        kind: key.type_,
        line: sum.line,
        count: sum.count,
        requested: sum.requested,
        dirtied: sum.dirtied,
        total_ns: sum.total_ns,
    }
}

pub(crate) fn data(key: &DataKey, sum: &DataSum, slot_ns: u64) -> FileData {
    FileData {
        at_ns: (key.slot + 1) * slot_ns,
        dev: Dev(key.dev),
        inode: Inode(key.inode),
        thread: Pid(key.thread),
        process: Tgid(sum.process),
        cgroup: Cgroup(sum.cgroup),
        bytes: sum.bytes,
        direction: DataDirection::from_code(key.direction as u8).unwrap_or_default(),
    }
}

/// Orders rows by time. At equal times, what made data dirty comes before what wrote it: who
/// reads them in turn knows then whose the written data is.
pub(crate) fn dirtied_first(rows: &mut [FileData]) {
    rows.sort_by_key(|row| (row.at_ns, row.direction != DataDirection::Dirtied));
}

/// Rows of one interval of the summary mode, by what they are counted by.
#[derive(Debug, Default)]
pub(crate) struct SummaryRows(HashMap<(Dev, Tgid, SummarizedKind, WaitCause, u32), SummaryCount>);

impl SummaryRows {
    /// Adds a sum of the kernel's. Several stacks may have the same cause.
    pub(crate) fn add(&mut self, key: &SummaryKey, sum: &SummarySum, cause: WaitCause) {
        let what = SummarizedKind::from_code(key.what as u8).unwrap_or_default();
        let cause = if what == SummarizedKind::Wait { cause } else { WaitCause::Other };
        let (dev, process) = (Dev(key.dev), Tgid(key.process));
        let row = self.0.entry((dev, process, what, cause, key.log2_ns)).or_insert_with(|| {
            SummaryCount {
                dev,
                process,
                what,
                cause,
                log2_ns: key.log2_ns,
                ..SummaryCount::default()
            }
        });
        row.cgroup = Cgroup(sum.cgroup);
        row.count += sum.count;
        row.total_ns += sum.total_ns;
    }

    /// Returns the rows for the interval that ends at `at_ns`.
    pub(crate) fn rows(self, at_ns: u64, interval_ns: u64) -> impl Iterator<Item = SummaryCount> {
        self.0.into_values().map(move |row| SummaryCount { at_ns, interval_ns, ..row })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_made_data_dirty_comes_before_what_wrote_it() {
        let row = |at_ns, direction| FileData { at_ns, direction, ..FileData::default() };
        let mut rows = [
            row(20, DataDirection::WrittenBySync),
            row(10, DataDirection::WrittenByFlusher),
            row(20, DataDirection::Dirtied),
            row(10, DataDirection::Dirtied),
        ];
        dirtied_first(&mut rows);
        let order: Vec<_> = rows.iter().map(|row| (row.at_ns, row.direction)).collect();
        assert_eq!(
            order,
            [
                (10, DataDirection::Dirtied),
                (10, DataDirection::WrittenByFlusher),
                (20, DataDirection::Dirtied),
                (20, DataDirection::WrittenBySync),
            ]
        );
    }

    #[test]
    fn stacks_of_one_cause_make_one_row() {
        let mut all = SummaryRows::default();
        let sum = SummarySum { count: 2, total_ns: 10, cgroup: 5 };
        for stack in [1, 2] {
            let key = SummaryKey {
                dev: 1,
                process: 2,
                what: SummarizedKind::Wait.code().into(),
                stack,
                brief: 0,
                log2_ns: 3,
            };
            all.add(&key, &sum, WaitCause::CommitWait);
        }
        let rows: Vec<SummaryCount> = all.rows(9, 4).collect();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].count, rows[0].total_ns), (4, 20));
        assert_eq!((rows[0].at_ns, rows[0].interval_ns), (9, 4));
    }
}
