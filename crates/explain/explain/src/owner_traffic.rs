//! Bytes that file systems wrote over time, by owner.
//!
//! Any thread may write data: the caller of fsync, the journal's thread, a flusher. The data belongs to the process
//! that dirtied it. So dirtied bytes are remembered per file. Written bytes are charged to the file's dirtiers in
//! proportion, or to the writer if there are none.

use std::collections::VecDeque;

use luc_events::event_kinds::DataDirection;
use luc_events::tables::FileData;
use luc_events::{Dev, Inode};

use crate::fast_hash::FastMap;
use crate::owners::{OwnerId, Owners};
use crate::saturating_grow::SaturatingGrow as _;

/// Time over which a row of the `data` table sums.
const INTERVAL_NS: u64 = 10_000_000;
/// Maximum number of intervals for which written bytes are remembered: a minute, longer than any usual commit.
const MAX_INTERVALS: usize = 6_000;
/// Maximum number of files whose dirtiers are remembered.
const MAX_FILES: usize = 1 << 16;

/// Bytes by owner: a list, because owners are few.
pub(crate) type OwnerBytes = Vec<(OwnerId, u64)>;

/// Adds to an owner's bytes.
pub(crate) fn add_share(shares: &mut OwnerBytes, owner: OwnerId, bytes: u64) {
    match shares.iter_mut().find(|(found, _)| *found == owner) {
        Some((_, sum)) => sum.grow(bytes),
        None => shares.push((owner, bytes)),
    }
}

/// Returns `amount` times `share` over `whole`.
fn part(amount: u64, share: u64, whole: u64) -> u64 {
    match amount.checked_mul(share) {
        Some(product) => product / whole,
        None => (u128::from(amount) * u128::from(share) / u128::from(whole)) as u64,
    }
}

/// Bytes dirtied and written.
#[derive(Debug, Default)]
pub(crate) struct OwnerTraffic {
    dirty: FastMap<(u32, u64), OwnerBytes>,
    written: FastMap<Dev, VecDeque<(u64, OwnerBytes)>>,
    peak_bytes: FastMap<Dev, u64>,
    dirtied: FastMap<(Dev, OwnerId), u64>,
    /// Charges of the present row, kept so that the list is allocated once.
    charged: OwnerBytes,
}

impl OwnerTraffic {
    /// Takes in a row.
    pub(crate) fn add(&mut self, row: &FileData, owners: &mut Owners) {
        let owner = owners.id(row.process, row.cgroup);
        let file = (row.dev.0, row.inode.0);
        if row.direction == DataDirection::Dirtied {
            if self.dirty.len() >= MAX_FILES && !self.dirty.contains_key(&file) {
                self.dirty.clear();
            }
            // Most files have one dirtier, and there are many.
            let dirtiers = (self.dirty.entry(file)).or_insert_with(|| OwnerBytes::with_capacity(1));
            add_share(dirtiers, owner, row.bytes);
            self.dirtied.entry((row.dev, owner)).or_default().grow(row.bytes);
            return;
        }
        self.charge(row.dev, row.inode, row.bytes, owner);
        let interval = row.at_ns.saturating_sub(1) / INTERVAL_NS;
        let written = self.written.entry(row.dev).or_default();
        if written.back().is_none_or(|&(last, _)| last < interval) {
            written.push_back((interval, OwnerBytes::new()));
            if written.len() > MAX_INTERVALS {
                written.pop_front();
            }
        }
        if let Some((_, sums)) = written.back_mut() {
            for &(owner, bytes) in &self.charged {
                add_share(sums, owner, bytes);
            }
            let bytes: u64 = sums.iter().map(|&(_, bytes)| bytes).sum();
            let peak = self.peak_bytes.entry(row.dev).or_default();
            *peak = bytes.max(*peak);
        }
    }

    /// Takes `bytes` from a file's dirtiers in proportion, and notes the charges in `charged`.
    fn charge(&mut self, dev: Dev, inode: Inode, bytes: u64, writer: OwnerId) {
        self.charged.clear();
        let Some(dirtiers) = self.dirty.get_mut(&(dev.0, inode.0)) else {
            self.charged.push((writer, bytes));
            return;
        };
        let dirty: u64 = dirtiers.iter().map(|&(_, bytes)| bytes).sum();
        if dirty == 0 {
            self.charged.push((writer, bytes));
            return;
        }
        for (owner, left) in dirtiers.iter_mut() {
            let share = part(bytes, *left, dirty);
            self.charged.push((*owner, share));
            *left = left.saturating_sub(share);
        }
        dirtiers.retain(|&(_, left)| left > 0);
        if dirtiers.is_empty() {
            self.dirty.remove(&(dev.0, inode.0));
        }
    }

    /// Returns the bytes written on `dev` between two times, by owner.
    pub(crate) fn between(&self, dev: Dev, from_ns: u64, to_ns: u64) -> OwnerBytes {
        let mut sums = OwnerBytes::new();
        self.fill_between(&mut sums, dev, from_ns, to_ns);
        sums
    }

    /// Replaces `sums` by the bytes written on `dev` between two times, by owner.
    pub(crate) fn fill_between(&self, sums: &mut OwnerBytes, dev: Dev, from_ns: u64, to_ns: u64) {
        sums.clear();
        let Some(written) = self.written.get(&dev) else {
            return;
        };
        let first =
            written.partition_point(|&(interval, _)| (interval + 1) * INTERVAL_NS <= from_ns);
        for (interval, shares) in written.range(first..) {
            let begin_ns = interval * INTERVAL_NS;
            if begin_ns >= to_ns {
                break;
            }
            let overlap_ns = to_ns.min(begin_ns + INTERVAL_NS) - from_ns.max(begin_ns);
            for &(owner, bytes) in shares {
                add_share(sums, owner, part(bytes, overlap_ns, INTERVAL_NS));
            }
        }
    }

    /// Returns the bytes dirtied on `dev`, by owner, in no order.
    pub(crate) fn dirtied_on(&self, dev: Dev) -> impl Iterator<Item = (OwnerId, u64)> {
        let on_dev = self.dirtied.iter().filter(move |((on, _), _)| *on == dev);
        on_dev.map(|(&(_, owner), &bytes)| (owner, bytes))
    }

    /// Returns the highest rate at which `dev` was written within 10 ms.
    pub(crate) fn peak_bytes_per_s(&self, dev: Dev) -> f64 {
        let bytes = self.peak_bytes.get(&dev).copied().unwrap_or(0);
        bytes as f64 * (1e9 / INTERVAL_NS as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_events::{Cgroup, Tgid};

    fn row(at_ns: u64, process: u32, bytes: u64, direction: DataDirection) -> FileData {
        FileData {
            at_ns,
            dev: Dev::new(8, 1),
            inode: Inode(5),
            process: Tgid(process),
            bytes,
            direction,
            ..FileData::default()
        }
    }

    #[test]
    fn what_a_flusher_writes_belongs_to_who_dirtied_it() {
        let (mut traffic, mut owners) = (OwnerTraffic::default(), Owners::default());
        let flusher = DataDirection::WrittenByFlusher;
        traffic.add(&row(5_000_000, 10, 3_000, DataDirection::Dirtied), &mut owners);
        traffic.add(&row(5_000_000, 11, 1_000, DataDirection::Dirtied), &mut owners);
        traffic.add(&row(20_000_000, 99, 2_000, flusher), &mut owners);
        let (ten, eleven) = (owners.id(Tgid(10), Cgroup(0)), owners.id(Tgid(11), Cgroup(0)));
        let all = traffic.between(Dev::new(8, 1), 10_000_000, 20_000_000);
        assert_eq!(all, [(ten, 1_500), (eleven, 500)]);
        let half = traffic.between(Dev::new(8, 1), 15_000_000, 90_000_000);
        assert_eq!(half, [(ten, 750), (eleven, 250)]);
    }

    #[test]
    fn without_a_dirtier_the_writer_is_charged() {
        let (mut traffic, mut owners) = (OwnerTraffic::default(), Owners::default());
        traffic.add(&row(9_000_000, 7, 4_096, DataDirection::WrittenDirectly), &mut owners);
        let seven = owners.id(Tgid(7), Cgroup(0));
        assert_eq!(traffic.between(Dev::new(8, 1), 0, 10_000_000), [(seven, 4_096)]);
    }
}
