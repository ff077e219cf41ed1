//! Sums over a trace, from which the report is made.

use std::collections::BTreeMap;

use luc_events::codes::RequestKind;
use luc_events::tables::{Request, Row, Trace};
use luc_events::{Cgroup, Dev, Tgid};

use super::ledgers::Ledgers;
use crate::contention::Sharing;
use crate::exchanges::Services;
use crate::fast::FastMap;
use crate::file_system::FileSystemSums;
use crate::grow::Grow as _;
use crate::histogram::Histogram;
use crate::owners::{OwnerId, Owners};
use crate::service::Service;
use crate::summary::Sums;
use crate::threads::Threads;
use crate::traffic::Traffic;

/// Times from this on (36 years of uptime) are implausible: their rows are left out.
const IMPLAUSIBLE_NS: u64 = 1 << 60;

#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) trace: Trace,
    pub(super) rows: Rows,
    pub(super) owners: Owners,
    pub(super) threads: Threads,
    pub(super) traffic: Traffic,
    pub(super) ledgers: Ledgers,
    pub(super) file_systems: FastMap<Dev, FileSystemSums>,
    pub(super) disks: FastMap<Dev, DiskSums>,
    /// Sums of a trace that has no single calls.
    pub(super) summary: Sums,
    pub(super) services: Services,
}

/// Counts of the rows taken in.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) count: u64,
    /// Rows left out for their times.
    pub(super) implausible: u64,
    /// Latest time of any row, ns.
    pub(super) latest_ns: u64,
    /// Rows that the recorder lost, by the place where it did.
    pub(super) lost: BTreeMap<String, u64>,
}

impl Rows {
    /// Counts a row. Returns false if it must be left out.
    pub(super) fn add(&mut self, row: &impl Row) -> bool {
        self.count += 1;
        let is_plausible = row.time_ns() < IMPLAUSIBLE_NS;
        if is_plausible {
            self.latest_ns = self.latest_ns.max(row.time_ns());
        } else {
            self.implausible += 1;
        }
        is_plausible
    }
}

#[derive(Debug, Default)]
pub(super) struct DiskSums {
    pub(super) by_kind: BTreeMap<RequestKind, Histogram>,
    pub(super) queued: Histogram,
    pub(super) service: Service,
    pub(super) sharing: Sharing,
    pub(super) bytes: u64,
    pub(super) errors: u64,
}

impl DiskSums {
    pub(super) fn add(&mut self, row: &Request, threads: &Threads) {
        let device_ns = row.complete_ns.saturating_sub(row.issue_ns);
        self.service.add(row);
        self.sharing.add(row, threads);
        self.by_kind.entry(row.kind).or_default().record(device_ns);
        if row.insert_ns > 0 {
            self.queued.record(row.issue_ns.saturating_sub(row.insert_ns));
        }
        self.bytes.grow(row.bytes);
        self.errors += u64::from(row.errno != 0);
    }
}

/// Bytes or nanoseconds by owner, with the owners' ids.
pub(super) fn named(shares: &[(OwnerId, u64)], owners: &Owners) -> Vec<(Tgid, Cgroup, u64)> {
    shares
        .iter()
        .map(|&(owner, amount)| {
            let (process, cgroup) = owners.get(owner);
            (process, cgroup, amount)
        })
        .collect()
}
