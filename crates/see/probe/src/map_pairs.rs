//! Sums that the programs keep in pairs of maps: while one of a pair is filled, the other is emptied.

use std::collections::HashMap;

use libbpf_rs::{MapCore, MapFlags};
use luc_events::codes::{Direction, Summarized};
use luc_events::tables::{Data, Handle, Summary};
use luc_events::{Cause, Cgroup, Dev, Inode, Pid, Tgid, Transaction};

use crate::ProbeError;
use crate::load::Programs;
use crate::record::{DataKey, DataSum, HandleKey, HandleSum, Plain, SummaryKey, SummarySum};
use crate::unpreempted::Unpreempted;

/// Entries that one system call takes out.
const BATCH: u32 = 8192;

/// The map of each pair that is being filled.
#[derive(Debug, Default)]
pub(crate) struct Epoch(u32);

impl Epoch {
    /// Returns the map of a pair that is not being filled now.
    pub(crate) fn idle<'a>(&self, pair: [&'a str; 2]) -> &'a str {
        pair[(self.0 as usize + 1) & 1]
    }

    /// Makes the programs fill the other map of each pair. A program that still runs may add to the old map for some
    /// microseconds, so empty that a while later.
    pub(crate) fn turn(&mut self, programs: &Programs) -> Result<(), ProbeError> {
        self.0 ^= 1;
        let _unpreempted = Unpreempted::begin();
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
    let unpreempted = Unpreempted::begin();
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

pub(crate) fn handle(key: &HandleKey, sum: &HandleSum) -> Handle {
    Handle {
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

pub(crate) fn data(key: &DataKey, sum: &DataSum, slot_ns: u64) -> Data {
    Data {
        at_ns: (key.slot + 1) * slot_ns,
        dev: Dev(key.dev),
        inode: Inode(key.inode),
        thread: Pid(key.thread),
        process: Tgid(sum.process),
        cgroup: Cgroup(sum.cgroup),
        bytes: sum.bytes,
        direction: Direction::from_code(key.direction as u8).unwrap_or_default(),
    }
}

/// Orders rows by time. At equal times, what made data dirty comes before what wrote it: who
/// reads them in turn knows then whose the written data is.
pub(crate) fn dirtied_first(rows: &mut [Data]) {
    rows.sort_by_key(|row| (row.at_ns, row.direction != Direction::Dirtied));
}

/// Rows of one interval of the summary mode, by what they are counted by.
#[derive(Debug, Default)]
pub(crate) struct Summaries(HashMap<(Dev, Tgid, Summarized, Cause, u32), Summary>);

impl Summaries {
    /// Adds a sum of the kernel's. Several stacks may have the same cause.
    pub(crate) fn add(&mut self, key: &SummaryKey, sum: &SummarySum, cause: Cause) {
        let what = Summarized::from_code(key.what as u8).unwrap_or_default();
        let cause = if what == Summarized::Wait { cause } else { Cause::Other };
        let (dev, process) = (Dev(key.dev), Tgid(key.process));
        let row = self.0.entry((dev, process, what, cause, key.log2_ns)).or_insert_with(|| {
            Summary { dev, process, what, cause, log2_ns: key.log2_ns, ..Summary::default() }
        });
        row.cgroup = Cgroup(sum.cgroup);
        row.count += sum.count;
        row.total_ns += sum.total_ns;
    }

    /// Returns the rows for the interval that ends at `at_ns`.
    pub(crate) fn rows(self, at_ns: u64, interval_ns: u64) -> impl Iterator<Item = Summary> {
        self.0.into_values().map(move |row| Summary { at_ns, interval_ns, ..row })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_made_data_dirty_comes_before_what_wrote_it() {
        let row = |at_ns, direction| Data { at_ns, direction, ..Data::default() };
        let mut rows = [
            row(20, Direction::WrittenBySync),
            row(10, Direction::WrittenByFlusher),
            row(20, Direction::Dirtied),
            row(10, Direction::Dirtied),
        ];
        dirtied_first(&mut rows);
        let order: Vec<_> = rows.iter().map(|row| (row.at_ns, row.direction)).collect();
        assert_eq!(
            order,
            [
                (10, Direction::Dirtied),
                (10, Direction::WrittenByFlusher),
                (20, Direction::Dirtied),
                (20, Direction::WrittenBySync),
            ]
        );
    }

    #[test]
    fn stacks_of_one_cause_make_one_row() {
        let mut all = Summaries::default();
        let sum = SummarySum { count: 2, total_ns: 10, cgroup: 5 };
        for stack in [1, 2] {
            let key = SummaryKey {
                dev: 1,
                process: 2,
                what: Summarized::Wait.code().into(),
                stack,
                brief: 0,
                log2_ns: 3,
            };
            all.add(&key, &sum, Cause::CommitWait);
        }
        let rows: Vec<Summary> = all.rows(9, 4).collect();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].count, rows[0].total_ns), (4, 20));
        assert_eq!((rows[0].at_ns, rows[0].interval_ns), (9, 4));
    }
}
