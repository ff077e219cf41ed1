//! Figures that findings rest on.

use super::{FigureUnit, FindingFigure};
use crate::call_time_parts::{CallTimePart, CallTimeParts};
use crate::report::{FileSystemReport, TraceReport};

pub(super) fn evidence(what: &'static str, value: f64, unit: FigureUnit) -> FindingFigure {
    FindingFigure { what, value, unit }
}

/// Figures of a file system, by finding.
pub(super) struct FindingInputs<'a> {
    pub(super) file_system: &'a FileSystemReport,
    pub(super) syncs: &'a CallTimeParts,
    pub(super) calls: &'a CallTimeParts,
}

impl FindingInputs<'_> {
    pub(super) fn place(&self) -> String {
        match self.file_system.mount_point.as_str() {
            "" => format!("device {}", self.file_system.dev),
            mount_point => mount_point.to_owned(),
        }
    }

    pub(super) fn has_journal(&self) -> bool {
        let commits = &self.file_system.commits;
        commits.full.count + commits.fast.count > 0 || self.file_system.journal_bytes > 0
    }

    fn sync_share(&self, ns: u64) -> f64 {
        ns as f64 / self.syncs.sum().max(1) as f64
    }

    pub(super) fn synchronization(&self) -> Vec<FindingFigure> {
        let model = &self.file_system.fsync_model;
        let mut found = vec![
            evidence(
                "share of fsync time spent on an earlier commit",
                self.sync_share(self.syncs.get(CallTimePart::Predecessor)),
                FigureUnit::Share,
            ),
            evidence(
                "share of fsync time spent on the own commit",
                self.sync_share(self.syncs.own_commit()),
                FigureUnit::Share,
            ),
            evidence("commits waited for per fsync", model.commits_waited, FigureUnit::Count),
            evidence(
                "fsyncs served per commit",
                self.file_system.commits.syncs_per_commit,
                FigureUnit::Count,
            ),
            evidence(
                "callers at a time",
                self.file_system.syncs.concurrent.round(),
                FigureUnit::Count,
            ),
            evidence("mean commit", self.file_system.commits.full.mean_ns as f64, FigureUnit::Ns),
        ];
        if self.come_spread() {
            let spread = &self.file_system.spread;
            found.extend([
                evidence(
                    "share of the fsyncs after a rest that came too late for the first commit",
                    spread.late_share(),
                    FigureUnit::Share,
                ),
                evidence(
                    "how long after its begin, median",
                    spread.late_by_ns as f64,
                    FigureUnit::Ns,
                ),
                evidence(
                    "how far their rate may fall with a faster processor, at most",
                    spread.fall_at_most,
                    FigureUnit::Share,
                ),
            ]);
        }
        found
    }

    /// Returns whether bursts caused most of the wait for useless commits: calls one after another after a rest of
    /// the journal.
    pub(super) fn come_spread(&self) -> bool {
        let spread = &self.file_system.spread;
        spread.late > 0 && spread.waited_ns >= self.syncs.get(CallTimePart::Predecessor) / 2
    }

    pub(super) fn write_delay(&self) -> Vec<FindingFigure> {
        let (mut delayed, mut all) = (0, 0);
        for calls in self.file_system.calls.values() {
            delayed += calls.delayed;
            all += calls.latency.count;
        }
        let delay_ns = self.calls.get(CallTimePart::WriteDelay);
        let mut found = vec![
            evidence("calls that met a buffer being written", delayed as f64, FigureUnit::Count),
            evidence(
                "their share of all calls",
                delayed as f64 / all.max(1) as f64,
                FigureUnit::Share,
            ),
            evidence(
                "mean delay of those",
                delay_ns as f64 / delayed.max(1) as f64,
                FigureUnit::Ns,
            ),
        ];
        if let Some(writes) = self.file_system.calls.get("write") {
            let share = writes.delayed as f64 / writes.latency.count.max(1) as f64;
            found.push(evidence("share of writes that were delayed", share, FigureUnit::Share));
        }
        found
    }

    pub(super) fn calls_blocked(&self, part: CallTimePart) -> Vec<FindingFigure> {
        let share = |parts: &CallTimeParts| parts.get(part) as f64 / parts.sum().max(1) as f64;
        vec![
            evidence("share of fsync time", share(self.syncs), FigureUnit::Share),
            evidence("share of other calls' time", share(self.calls), FigureUnit::Share),
            evidence(
                "in all",
                self.syncs.get(part) as f64 + self.calls.get(part) as f64,
                FigureUnit::Ns,
            ),
        ]
    }

    pub(super) fn checkpoint(&self) -> Vec<FindingFigure> {
        let mut found = self.calls_blocked(CallTimePart::Checkpoint);
        found.push(evidence(
            "size of the journal",
            self.file_system.journal_bytes as f64,
            FigureUnit::Bytes,
        ));
        found
    }

    pub(super) fn device(&self, report: &TraceReport) -> Vec<FindingFigure> {
        let commits = &self.file_system.commits;
        let share = |what: &'static str, ns| evidence(what, self.sync_share(ns), FigureUnit::Share);
        let mut found = Vec::new();
        let syncs = &self.file_system.syncs.latency;
        if syncs.count > 0 {
            if self.has_journal() {
                let own_ns = self.syncs.own_commit();
                found.push(share("share of fsync time in the own commit", own_ns));
            } else {
                let flush_ns = self.syncs.get(CallTimePart::Flush);
                found.push(share("share of fsync time in cache flushes", flush_ns));
            }
            let data_ns = self.syncs.get(CallTimePart::DataWriteback);
            found.push(share("share of fsync time in data writeback", data_ns));
        }
        if self.has_journal() {
            found.push(evidence("mean commit", commits.full.mean_ns as f64, FigureUnit::Ns));
        }
        if syncs.count > 0 {
            found.push(evidence("mean fsync", syncs.mean_ns as f64, FigureUnit::Ns));
        }
        let flushes = report.disks.first().and_then(|disk| disk.device.get("flush"));
        if let Some(flushes) = flushes {
            found.push(evidence(
                "mean cache flush of the busiest disk",
                flushes.mean_ns as f64,
                FigureUnit::Ns,
            ));
        }
        found
    }
}
