//! Figures that findings rest on.

use super::{Evidence, Unit};
use crate::parts::{Part, Parts};
use crate::report::{FileSystemReport, Report};

pub(super) fn evidence(what: &'static str, value: f64, unit: Unit) -> Evidence {
    Evidence { what, value, unit }
}

/// Figures of a file system, by finding.
pub(super) struct Figures<'a> {
    pub(super) file_system: &'a FileSystemReport,
    pub(super) syncs: &'a Parts,
    pub(super) calls: &'a Parts,
}

impl Figures<'_> {
    pub(super) fn place(&self) -> String {
        match self.file_system.mount_point.as_str() {
            "" => format!("device {}", self.file_system.dev),
            mount_point => mount_point.to_owned(),
        }
    }

    pub(super) fn has_journal(&self) -> bool {
        let commits = &self.file_system.commits;
        commits.full.count + commits.fast.count > 0
    }

    fn sync_share(&self, ns: u64) -> f64 {
        ns as f64 / self.syncs.sum().max(1) as f64
    }

    pub(super) fn synchronization(&self) -> Vec<Evidence> {
        let model = &self.file_system.fsync_model;
        let mut found = vec![
            evidence(
                "share of fsync time spent on an earlier commit",
                self.sync_share(self.syncs.get(Part::Predecessor)),
                Unit::Share,
            ),
            evidence(
                "share of fsync time spent on the own commit",
                self.sync_share(self.syncs.own_commit()),
                Unit::Share,
            ),
            evidence("commits waited for per fsync", model.commits_waited, Unit::Count),
            evidence(
                "fsyncs served per commit",
                self.file_system.commits.syncs_per_commit,
                Unit::Count,
            ),
            evidence("callers at a time", self.file_system.syncs.concurrent.round(), Unit::Count),
            evidence("mean commit", self.file_system.commits.full.mean_ns as f64, Unit::Ns),
        ];
        if self.come_spread() {
            let spread = &self.file_system.spread;
            found.extend([
                evidence(
                    "share of the fsyncs after a rest that came too late for the first commit",
                    spread.late_share(),
                    Unit::Share,
                ),
                evidence("how long after its begin, median", spread.late_by_ns as f64, Unit::Ns),
                evidence(
                    "how far their rate may fall with a faster processor, at most",
                    spread.fall_at_most,
                    Unit::Share,
                ),
            ]);
        }
        found
    }

    /// Returns whether bursts caused most of the wait for useless commits: calls one after another after a rest of
    /// the journal.
    pub(super) fn come_spread(&self) -> bool {
        let spread = &self.file_system.spread;
        spread.late > 0 && spread.waited_ns >= self.syncs.get(Part::Predecessor) / 2
    }

    pub(super) fn write_delay(&self) -> Vec<Evidence> {
        let (mut delayed, mut all) = (0, 0);
        for calls in self.file_system.calls.values() {
            delayed += calls.delayed;
            all += calls.latency.count;
        }
        let delay_ns = self.calls.get(Part::WriteDelay);
        let mut found = vec![
            evidence("calls that met a buffer being written", delayed as f64, Unit::Count),
            evidence("their share of all calls", delayed as f64 / all.max(1) as f64, Unit::Share),
            evidence("mean delay of those", delay_ns as f64 / delayed.max(1) as f64, Unit::Ns),
        ];
        if let Some(writes) = self.file_system.calls.get("write") {
            let share = writes.delayed as f64 / writes.latency.count.max(1) as f64;
            found.push(evidence("share of writes that were delayed", share, Unit::Share));
        }
        found
    }

    pub(super) fn calls_blocked(&self, part: Part) -> Vec<Evidence> {
        let share = |parts: &Parts| parts.get(part) as f64 / parts.sum().max(1) as f64;
        vec![
            evidence("share of fsync time", share(self.syncs), Unit::Share),
            evidence("share of other calls' time", share(self.calls), Unit::Share),
            evidence("in all", self.syncs.get(part) as f64 + self.calls.get(part) as f64, Unit::Ns),
        ]
    }

    pub(super) fn checkpoint(&self) -> Vec<Evidence> {
        let mut found = self.calls_blocked(Part::Checkpoint);
        found.push(evidence(
            "size of the journal",
            self.file_system.journal_bytes as f64,
            Unit::Bytes,
        ));
        found
    }

    pub(super) fn device(&self, report: &Report) -> Vec<Evidence> {
        let commits = &self.file_system.commits;
        let mut found = vec![
            evidence(
                "share of fsync time in the own commit",
                self.sync_share(self.syncs.own_commit()),
                Unit::Share,
            ),
            evidence(
                "share of fsync time in data writeback",
                self.sync_share(self.syncs.get(Part::DataWriteback)),
                Unit::Share,
            ),
            evidence("mean commit", commits.full.mean_ns as f64, Unit::Ns),
            evidence("mean fsync", self.file_system.syncs.latency.mean_ns as f64, Unit::Ns),
        ];
        let flushes = report.disks.first().and_then(|disk| disk.device.get("flush"));
        if let Some(flushes) = flushes {
            found.push(evidence(
                "mean cache flush of the busiest disk",
                flushes.mean_ns as f64,
                Unit::Ns,
            ));
        }
        found
    }
}
