//! Reports from the sums of the recorder's summary mode.
//!
//! These are numbers and durations of fsyncs, commits, waits by cause and requests, by process and file system.
//! Single calls are unknown, so no call is split, nobody is blamed, and the models lack their inputs. But each fsync
//! needs one commit only. So an fsync's wait for commits beyond one mean commit was spent on commits that did not
//! serve it.

use std::collections::BTreeMap;

use luc_events::event_kinds::SummarizedKind;
use luc_events::tables::SummaryCount;
use luc_events::{Cgroup, Dev, Tgid, WaitCause};

use crate::accounted_threads::{is_idle, is_storage};
use crate::actor::Actor;
use crate::fast_hash::FastMap;
use crate::findings::{FigureUnit, Finding, FindingFigure, FindingKind, ranked};
use crate::latency_histogram::LatencyDistribution;
use crate::report::{
    DiskReport, FileSystemReport, ProcessReport, TimeAccount, TraceReport, WorkingTime,
};
use crate::saturating_grow::SaturatingGrow as _;

/// The reason why there are no predictions.
const SUMMARY_REASON: &str = "recorded as summary";

/// Durations by powers of two.
#[derive(Clone, Debug)]
struct Durations {
    counts: [u64; 64],
    count: u64,
    total_ns: u64,
}

impl Default for Durations {
    fn default() -> Self {
        Self { counts: [0; 64], count: 0, total_ns: 0 }
    }
}

impl Durations {
    fn add(&mut self, row: &SummaryCount) {
        self.counts[row.log2_ns.min(63) as usize].grow(row.count);
        self.count.grow(row.count);
        self.total_ns.grow(row.total_ns);
    }

    /// Quantiles are upper edges of powers of two: at most twice too high.
    fn latency(&self) -> LatencyDistribution {
        let edge_ns = |log2: usize| u64::MAX >> (63 - log2);
        let quantile_ns = |quantile: f64| {
            let rank = ((quantile * self.count as f64).ceil() as u64).max(1);
            let mut seen = 0_u64;
            let found = self.counts.iter().position(|&count| {
                seen = seen.saturating_add(count);
                seen >= rank
            });
            found.map_or(0, edge_ns)
        };
        let buckets = self.counts.iter().enumerate();
        LatencyDistribution {
            count: self.count,
            total_ns: self.total_ns,
            mean_ns: self.mean_ns(),
            p50_ns: quantile_ns(0.5),
            p90_ns: quantile_ns(0.9),
            p99_ns: quantile_ns(0.99),
            p999_ns: quantile_ns(0.999),
            max_ns: quantile_ns(1.0),
            buckets: buckets
                .filter(|&(_, &count)| count > 0)
                .map(|(log2, &count)| (edge_ns(log2), count))
                .collect(),
        }
    }

    fn mean_ns(&self) -> u64 {
        self.total_ns.checked_div(self.count).unwrap_or(0)
    }
}

/// Sums that a recorder wrote in its summary mode.
#[derive(Debug, Default)]
pub(crate) struct SummaryModeSums {
    syncs: FastMap<Dev, Durations>,
    commits: FastMap<Dev, Durations>,
    /// Requests by disk: those that move data, and flushes.
    requests: FastMap<Dev, [Durations; 2]>,
    syncs_by: FastMap<(Tgid, Cgroup), (u64, u64)>,
    waits: FastMap<(Dev, Tgid, WaitCause), u64>,
}

impl SummaryModeSums {
    pub(crate) fn add(&mut self, row: &SummaryCount) {
        match row.what {
            SummarizedKind::Sync => {
                self.syncs.entry(row.dev).or_default().add(row);
                let by = self.syncs_by.entry((row.process, row.cgroup)).or_default();
                by.0.grow(row.count);
                by.1.grow(row.total_ns);
            }
            SummarizedKind::Commit => self.commits.entry(row.dev).or_default().add(row),
            SummarizedKind::Request => self.requests.entry(row.dev).or_default()[0].add(row),
            SummarizedKind::Flush => self.requests.entry(row.dev).or_default()[1].add(row),
            SummarizedKind::Wait => {
                let key = (row.dev, row.process, row.cause);
                self.waits.entry(key).or_default().grow(row.total_ns);
            }
        }
    }

    /// Fills a report from the sums, without findings. `comm` names processes.
    pub(crate) fn fill<'a>(&self, report: &mut TraceReport, comm: impl Fn(Tgid) -> &'a str) {
        let seconds = report.trace.end_ns.saturating_sub(report.trace.start_ns).max(1) as f64 / 1e9;
        for &dev in self.syncs.keys().chain(self.commits.keys()) {
            if !report.file_systems.iter().any(|found| found.dev == dev) {
                report.file_systems.push(FileSystemReport { dev, ..FileSystemReport::default() });
            }
        }
        for found in &mut report.file_systems {
            found.batching.unknown = Some(SUMMARY_REASON);
            if let Some(syncs) = self.syncs.get(&found.dev) {
                found.syncs.latency = syncs.latency();
                found.syncs.per_s = syncs.count as f64 / seconds;
                found.syncs.kinds = BTreeMap::from([("syncs of any kind", syncs.count)]);
            }
            if let Some(commits) = self.commits.get(&found.dev) {
                found.commits.full = commits.latency();
                found.commits.syncs_per_commit =
                    found.syncs.latency.count as f64 / commits.count.max(1) as f64;
            }
        }
        report
            .file_systems
            .sort_by_key(|found| (std::cmp::Reverse(found.syncs.latency.total_ns), found.dev));
        self.fill_processes(report, comm);
        self.fill_accounts(report);
        report.disks = self.disks();
    }

    fn fill_processes<'a>(&self, report: &mut TraceReport, comm: impl Fn(Tgid) -> &'a str) {
        report.processes = self
            .syncs_by
            .iter()
            .map(|(&(process, cgroup), &(syncs, sync_ns))| ProcessReport {
                actor: Actor { process, comm: comm(process).to_owned(), cgroup },
                syncs,
                sync_ns,
                ..ProcessReport::default()
            })
            .collect();
        report
            .processes
            .sort_by_key(|found| (std::cmp::Reverse(found.sync_ns), found.actor.process));
    }

    /// A wait lasts from leaving a processor to being on one again, so it includes runnable time.
    fn fill_accounts(&self, report: &mut TraceReport) {
        let accounts = &mut report.accounts.processes;
        let mut places: FastMap<Tgid, usize> = FastMap::default();
        for (place, account) in accounts.iter().enumerate() {
            places.insert(account.process.unwrap_or_default(), place);
        }
        for (&(_, process, cause), &ns) in &self.waits {
            if let Some(&place) = places.get(&process) {
                add_wait(&mut accounts[place], cause, ns);
            }
        }
        accounts.sort_by_key(|account| {
            (
                std::cmp::Reverse(account.storage_ns),
                std::cmp::Reverse(account.wall_ns),
                account.process,
            )
        });
    }

    fn disks(&self) -> Vec<DiskReport> {
        let mut disks: Vec<DiskReport> = self
            .requests
            .iter()
            .map(|(&dev, durations)| DiskReport {
                dev,
                device: ["requests with data", "flush"]
                    .into_iter()
                    .zip(durations.iter().map(Durations::latency))
                    .filter(|(_, latency)| latency.count > 0)
                    .collect(),
                ..DiskReport::default()
            })
            .collect();
        disks.sort_by_key(|disk| disk.dev);
        disks
    }

    /// Finds problems, most important first. The report must be filled.
    pub(crate) fn findings(&self, report: &TraceReport) -> Vec<Finding> {
        let mut by_place: BTreeMap<Dev, FastMap<WaitCause, u64>> = BTreeMap::new();
        let mut total_ns = 0_u64;
        for (&(dev, process, cause), &ns) in &self.waits {
            // A journal's thread works for the others, who wait for it.
            let account = report.accounts.processes.iter();
            let is_journal = account
                .filter(|account| account.process == Some(process))
                .any(|account| account.comm.starts_with("jbd2/"));
            if is_storage(cause) && !is_journal {
                total_ns = total_ns.saturating_add(ns);
                by_place.entry(dev).or_default().entry(cause).or_default().grow(ns);
            }
        }
        let found =
            by_place.iter().flat_map(|(&dev, causes)| self.in_place(report, dev, causes)).collect();
        ranked(report, found, total_ns)
    }

    fn in_place(
        &self,
        report: &TraceReport,
        dev: Dev,
        causes: &FastMap<WaitCause, u64>,
    ) -> Vec<Finding> {
        let known = report.file_systems.iter().find(|found| found.dev == dev);
        let name = match known {
            Some(found) if !found.mount_point.is_empty() => format!(" on {}", found.mount_point),
            Some(found) => format!(" on device {}", found.dev),
            None => String::new(),
        };
        let sum = |all: &[WaitCause]| {
            all.iter().fold(0_u64, |sum, cause| {
                sum.saturating_add(causes.get(cause).copied().unwrap_or(0))
            })
        };
        let finding = |kind, cost_ns, sentence: String, evidence| Finding {
            kind,
            sentence,
            dev: known.map(|found| found.dev),
            cost_ns,
            share: 0.0,
            victim: None,
            culprit: None,
            evidence,
        };
        let waited_ns = sum(&[WaitCause::CommitWait, WaitCause::FastCommit]);
        let syncs = self.syncs.get(&dev).map_or(0, |syncs| syncs.count);
        let mut found = match self.commits.get(&dev) {
            Some(commits) => {
                let own_ns = waited_ns.min(syncs.saturating_mul(commits.mean_ns()));
                let device_ns =
                    sum(&[WaitCause::DataWriteback, WaitCause::Device, WaitCause::Flush]);
                vec![
                    finding(
                        FindingKind::SynchronizationBound,
                        waited_ns - own_ns,
                        format!("fsyncs{name} wait for commits that do not serve them"),
                        evidence(waited_ns, syncs, commits),
                    ),
                    finding(
                        FindingKind::DeviceBound,
                        own_ns.saturating_add(device_ns),
                        format!("calls{name} take as long as the device takes for their own work"),
                        evidence(waited_ns, syncs, commits),
                    ),
                ]
            }
            None => vec![finding(
                FindingKind::OtherLog,
                sum(&[WaitCause::CommitWait, WaitCause::DataWriteback]),
                format!(
                    "fsyncs{name} wait for its own log or data; it has no jbd2 commits to look into"
                ),
                Vec::new(),
            )],
        };
        found.extend(CAUSE_FINDINGS.iter().map(|&(cause, kind, what)| {
            finding(kind, sum(&[cause]), format!("calls{name} {what}"), Vec::new())
        }));
        found.retain(|finding| finding.cost_ns > 0);
        found
    }
}

/// Returns the working time of a filled report. Sums have neither idleness nor waits for locks of user space: all that
/// is left over counts as idle.
pub(crate) fn working(report: &TraceReport) -> WorkingTime {
    let mut working = WorkingTime::default();
    for account in &report.accounts.processes {
        let left_ns = account.unaccounted_ns.max(0).unsigned_abs();
        working.total_ns.grow(account.wall_ns.saturating_sub(left_ns));
        working.computed_ns.grow(account.user_ns.saturating_add(account.system_ns));
        working.storage_ns.grow(account.storage_ns);
    }
    working
}

/// Findings that a cause of waits shows by itself.
const CAUSE_FINDINGS: [(WaitCause, FindingKind, &str); 6] = [
    (
        WaitCause::ShadowBuffer,
        FindingKind::WriteDelayBound,
        "wait for buffers that a commit is writing to the journal",
    ),
    (
        WaitCause::TransactionLocked,
        FindingKind::LockUp,
        "wait for a transaction that takes no more changes",
    ),
    (
        WaitCause::Checkpoint,
        FindingKind::CheckpointPressure,
        "wait for space in the journal, which is too small",
    ),
    (WaitCause::DirectoryLock, FindingKind::DirectoryLock, "queue for the lock of a directory"),
    (WaitCause::InodeLock, FindingKind::FileLock, "queue for the lock of a file"),
    (
        WaitCause::DirtyThrottle,
        FindingKind::DirtyThrottling,
        "are slowed down, as more is made dirty than the disk takes",
    ),
];

fn evidence(waited_ns: u64, syncs: u64, commits: &Durations) -> Vec<FindingFigure> {
    let per_sync_ns = waited_ns as f64 / syncs.max(1) as f64;
    let figure = |what, value, unit| FindingFigure { what, value, unit };
    vec![
        figure("mean wait for commits per fsync", per_sync_ns, FigureUnit::Ns),
        figure("mean commit", commits.mean_ns() as f64, FigureUnit::Ns),
        figure(
            "fsyncs over commits",
            syncs as f64 / commits.count.max(1) as f64,
            FigureUnit::Count,
        ),
    ]
}

fn add_wait(account: &mut TimeAccount, cause: WaitCause, ns: u64) {
    if is_idle(cause) {
        account.idle_ns.grow(ns);
    } else {
        account.blocked.entry(cause.name()).or_default().grow(ns);
    }
    if is_storage(cause) {
        account.storage_ns.grow(ns);
    }
    let signed = i64::try_from(ns).unwrap_or(i64::MAX);
    account.unaccounted_ns = account.unaccounted_ns.saturating_sub(signed);
}

#[cfg(test)]
mod tests;
