//! Sums over a trace, from which the report is made.

use std::collections::BTreeMap;

use luc_events::event_kinds::RequestKind;
use luc_events::tables::{BlockRequest, TableRow, TraceDescription};
use luc_events::{Cgroup, Dev, Tgid};

use super::loss_ledgers::LossLedgers;
use crate::accounted_threads::AccountedThreads;
use crate::device_write_speed::DeviceWriteSpeed;
use crate::disk_contention::DiskSharing;
use crate::fast_hash::FastMap;
use crate::file_system_sums::FileSystemSums;
use crate::latency_histogram::LatencyHistogram;
use crate::owner_traffic::OwnerTraffic;
use crate::owners::{OwnerId, Owners};
use crate::requests_in_flight::RequestsInFlight;
use crate::root_accounts::RootAccounts;
use crate::saturating_grow::SaturatingGrow as _;
use crate::service_latency::ServiceSums;
use crate::summary_mode::SummaryModeSums;

/// Times from this on (36 years of uptime) are implausible: their rows are left out.
const IMPLAUSIBLE_NS: u64 = 1 << 60;

/// Sums over a whole trace, from which its report is made.
#[derive(Debug, Default)]
pub(super) struct TraceTotals {
    pub(super) trace: TraceDescription,
    pub(super) rows: TakenRows,
    pub(super) owners: Owners,
    pub(super) threads: AccountedThreads,
    pub(super) roots: RootAccounts,
    pub(super) traffic: OwnerTraffic,
    pub(super) ledgers: LossLedgers,
    pub(super) file_systems: FastMap<Dev, FileSystemSums>,
    pub(super) disks: FastMap<Dev, DiskSums>,
    pub(super) in_flight: RequestsInFlight,
    /// Sums of a trace that has no single calls.
    pub(super) summary: SummaryModeSums,
    pub(super) services: ServiceSums,
}

/// Counts of the rows taken in.
#[derive(Debug, Default)]
pub(super) struct TakenRows {
    pub(super) count: u64,
    /// Rows left out for their times.
    pub(super) implausible: u64,
    /// Latest time of any row, ns.
    pub(super) latest_ns: u64,
    /// Rows that the recorder lost, by the place where it did.
    pub(super) lost: BTreeMap<String, u64>,
}

impl TakenRows {
    /// Counts a row. Returns false if it must be left out.
    pub(super) fn add(&mut self, row: &impl TableRow) -> bool {
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
    pub(super) by_kind: BTreeMap<RequestKind, LatencyHistogram>,
    pub(super) queued: LatencyHistogram,
    pub(super) service: DeviceWriteSpeed,
    pub(super) sharing: DiskSharing,
    pub(super) bytes: u64,
    pub(super) errors: u64,
}

impl DiskSums {
    pub(super) fn add(&mut self, row: &BlockRequest, threads: &AccountedThreads) {
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
