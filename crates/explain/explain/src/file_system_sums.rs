//! Sums of one file system.

use std::collections::BTreeMap;

use luc_events::Pid;
use luc_events::event_kinds::FileCallKind;
use luc_events::tables::{FileCall, FsyncCall, MountedFileSystem};

use crate::batching_prediction::{BatchingInputs, FsyncCallerSums, predict};
use crate::call_time_parts::{CallTimePart, CallTimeParts};
use crate::fast_hash::FastMap;
use crate::journal_history::JournalHistory;
use crate::late_callers::LateCallerSums;
use crate::latency_histogram::LatencyHistogram;
use crate::report::{CallKindReport, FileSystemReport, SyncReport};
use crate::saturating_grow::SaturatingGrow as _;
use crate::sync_ways::{SyncWay, SyncWayCounts};
use crate::thesis_models::{FsyncSums, WriteModel};

/// A thread's first and last fsync, and their number.
#[derive(Clone, Copy, Debug)]
struct Caller {
    first_ns: u64,
    last_ns: u64,
    count: u64,
}

/// Sums over fsync and the like.
#[derive(Debug, Default)]
pub(crate) struct SyncSums {
    latency: LatencyHistogram,
    parts: CallTimeParts,
    own_commit: LatencyHistogram,
    errors: u64,
    kinds: BTreeMap<&'static str, u64>,
    pub(crate) without_commit: u64,
    closed: u64,
    ways: SyncWayCounts,
    all: Times,
    /// fsyncs that `luc run` reaches.
    reached: Times,
}

#[derive(Debug, Default)]
struct Times {
    count: u64,
    callers: FastMap<Pid, Caller>,
    first_ns: u64,
    last_ns: u64,
}

impl Times {
    fn add(&mut self, thread: Pid, enter_ns: u64, exit_ns: u64) {
        if self.count == 0 || enter_ns < self.first_ns {
            self.first_ns = enter_ns;
        }
        self.count += 1;
        self.last_ns = self.last_ns.max(exit_ns);
        let new = Caller { first_ns: enter_ns, last_ns: exit_ns, count: 0 };
        let caller = self.callers.entry(thread).or_insert(new);
        caller.last_ns = caller.last_ns.max(exit_ns);
        caller.count += 1;
    }

    /// Returns the calls per second from the first to the last.
    fn per_s(&self) -> f64 {
        let seconds = self.last_ns.saturating_sub(self.first_ns) as f64 / 1e9;
        if seconds > 0.0 { self.count as f64 / seconds } else { 0.0 }
    }

    /// Returns the mean number of threads that were calling at a time. Threads that called once do not count.
    fn concurrent(&self) -> f64 {
        let span_ns = self.last_ns.saturating_sub(self.first_ns);
        let active_ns: u64 = self
            .callers
            .values()
            .filter(|caller| caller.count > 1)
            .map(|caller| caller.last_ns - caller.first_ns)
            .sum();
        if span_ns == 0 { 0.0 } else { active_ns as f64 / span_ns as f64 }
    }
}

impl SyncSums {
    /// Counts a call that is complete.
    pub(crate) fn add(&mut self, row: &FsyncCall, way: SyncWay, enter_ns: u64) {
        self.latency.record(row.exit_ns.saturating_sub(enter_ns));
        let kind = match way {
            SyncWay::IoUring => "io_uring",
            _ => row.kind.name(),
        };
        *self.kinds.entry(kind).or_default() += 1;
        self.errors += u64::from(row.errno != 0);
        self.ways.add(way);
        self.all.add(row.thread, enter_ns, row.exit_ns);
        if way == SyncWay::Call {
            self.reached.add(row.thread, enter_ns, row.exit_ns);
        }
    }

    /// Adds what a call's time was made of. `is_closed`: the parts are as long as the call, within 1 %.
    pub(crate) fn add_parts(&mut self, parts: &CallTimeParts, is_closed: bool) {
        self.parts.add_all(parts);
        if let own_ns @ 1.. = parts.own_commit() + parts.get(CallTimePart::FastCommit) {
            self.own_commit.record(own_ns);
        }
        self.closed += u64::from(is_closed);
    }

    fn report(&self) -> SyncReport {
        SyncReport {
            latency: self.latency.summary(),
            per_s: self.all.per_s(),
            concurrent: self.all.concurrent(),
            errors: self.errors,
            parts: self.parts,
            own_commit: self.own_commit.summary(),
            closed: self.closed,
            kinds: self.kinds.clone(),
            ways: self.ways,
            without_commit: self.without_commit,
            callers: self.all.callers.values().filter(|caller| caller.count > 1).count() as u64,
        }
    }
}

/// Sums over the calls of one kind on a file system.
#[derive(Debug, Default)]
pub(crate) struct CallSums {
    latency: LatencyHistogram,
    errors: u64,
    bytes: u64,
    parts: CallTimeParts,
    delayed: u64,
    locked_up: u64,
}

#[derive(Debug, Default)]
pub(crate) struct FileSystemSums {
    pub(crate) row: Option<MountedFileSystem>,
    pub(crate) journal: JournalHistory,
    pub(crate) syncs: SyncSums,
    pub(crate) calls: BTreeMap<FileCallKind, CallSums>,
    pub(crate) fsync_model: FsyncSums,
    pub(crate) spread: LateCallerSums,
    pub(crate) write_model: WriteModel,
    pub(crate) callers: FsyncCallerSums,
}

impl FileSystemSums {
    /// Returns its report without the owners of its commits. `write_ns` is its disk's time per write.
    pub(crate) fn report(&self, processors: u32, write_ns: Option<f64>) -> FileSystemReport {
        let row = self.row.clone().unwrap_or_default();
        let sums = &self.journal.sums;
        let commits = sums.full.count() + sums.fast.count();
        let situation = BatchingInputs {
            concurrent: self.syncs.reached.concurrent(),
            processors,
            write_ns,
            measured_per_s: self.syncs.reached.per_s(),
            commits: &sums.by_served,
            fast_commit: sums.fast.count() > sums.full.count(),
        };
        let calls = self.calls.iter().map(|(kind, calls)| (kind.name(), calls.report()));
        let mut write_model = self.write_model.clone();
        write_model.blocked_per_commit =
            (write_model.y.writes + write_model.z.writes) as f64 / commits.max(1) as f64;
        FileSystemReport {
            dev: row.dev,
            disk: row.disk,
            kind: row.kind,
            mount_point: row.mount_point,
            options: row.options,
            journal_bytes: row.journal_blocks * u64::from(row.block_bytes),
            fast_commit: row.fast_commit,
            syncs: self.syncs.report(),
            calls: calls.collect(),
            fsync_model: self.fsync_model.model(),
            spread: self.spread.report(),
            write_model,
            batching: predict(&self.callers, &situation),
            ..FileSystemReport::default()
        }
    }
}

impl CallSums {
    pub(crate) fn add(&mut self, row: &FileCall, parts: &CallTimeParts) {
        self.latency.record(row.exit_ns.saturating_sub(row.enter_ns));
        self.errors += u64::from(row.errno != 0);
        self.bytes.grow(row.bytes);
        self.parts.add_all(parts);
        self.delayed += u64::from(parts.get(CallTimePart::WriteDelay) > 0);
        self.locked_up += u64::from(parts.get(CallTimePart::LockUp) > 0);
    }

    fn report(&self) -> CallKindReport {
        CallKindReport {
            latency: self.latency.summary(),
            errors: self.errors,
            bytes: self.bytes,
            parts: self.parts,
            delayed: self.delayed,
            locked_up: self.locked_up,
        }
    }
}
