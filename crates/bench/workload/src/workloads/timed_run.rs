//! Common parts of workloads that run for a time: plan, run, head of the report.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use luc_host::interrupt_flag;
use luc_host::processor_time;
use serde::Serialize;

use super::explain;
use crate::error::BenchError;
use crate::latency::LatencyFigures;
use crate::scratch_directory::ScratchDirectory;
use crate::workers::{
    self, ClientFault, ClientKind, RunMeasurement, RunProgress, RunSchedule, ThinkDistribution,
    ThinkPauses, ThinkTime, WorkloadClient, now_ns,
};

/// The part of a plan that every timed workload has.
#[derive(Debug, Clone)]
pub struct TimedPlan {
    /// A fresh subdirectory of this one is used and removed.
    pub directory: PathBuf,
    pub schedule: RunSchedule,
    /// Pauses of the clients after each round of their loop.
    pub think: ThinkTime,
    pub seed: u64,
    /// Fsyncs do nothing and keep nothing. A run then shows the time that remains without them.
    pub no_fsync: bool,
}

impl TimedPlan {
    /// Calls fsync, except with `no_fsync`.
    pub(super) fn sync(&self, file: &File) -> io::Result<()> {
        if self.no_fsync {
            return Ok(());
        }
        file.sync_all()
    }

    /// Calls `call`, except with `no_fsync`.
    fn synchronize(&self, call: SyncCall, file: &File) -> io::Result<()> {
        match call {
            SyncCall::Fsync => self.sync(file),
            SyncCall::Fdatasync if self.no_fsync => Ok(()),
            SyncCall::Fdatasync => file.sync_data(),
        }
    }

    /// Runs the loop of `client` until the end of the run: calls `round` with its number, from 0, then pauses.
    pub(super) fn rounds(
        &self,
        client: &WorkloadClient<'_>,
        mut round: impl FnMut(u64) -> Result<(), ClientFault>,
    ) -> Result<(), ClientFault> {
        let mut pauses = ThinkPauses::new(&self.think, self.seed, client);
        for number in 0.. {
            if !client.running(now_ns()) {
                break;
            }
            round(number)?;
            pauses.pause(client);
        }
        Ok(())
    }

    /// Writes a record and synchronizes it. Counts the write as `operation`, and the synchronization as the one after
    /// it.
    pub(super) fn write_durably(
        &self,
        client: &WorkloadClient<'_>,
        write: &RecordWrite<'_>,
        operation: usize,
    ) -> Result<(), ClientFault> {
        let &RecordWrite { file, at_bytes, record, call } = write;
        let start = now_ns();
        file.write_all_at(record, at_bytes).map_err(ClientFault::of(operation))?;
        let written = now_ns();
        self.synchronize(call, file).map_err(ClientFault::of(operation + 1))?;
        let synced = now_ns();
        if client.counts(synced) {
            client.record(operation, written - start);
            client.record(operation + 1, synced - written);
        }
        Ok(())
    }

    /// Threads without pauses that work in `directory`.
    #[cfg(test)]
    pub(super) fn of_threads(directory: &Path, clients: usize, measured_ns: u64) -> Self {
        Self {
            directory: directory.to_path_buf(),
            schedule: RunSchedule { clients, kind: ClientKind::Thread, warmup_ns: 0, measured_ns },
            think: ThinkTime::default(),
            seed: 1,
            no_fsync: false,
        }
    }
}

/// A record to write, and the call that makes it durable.
pub(super) struct RecordWrite<'a> {
    pub(super) file: &'a File,
    pub(super) at_bytes: u64,
    pub(super) record: &'a [u8],
    pub(super) call: SyncCall,
}

/// The call that makes a write durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncCall {
    /// Data, and the metadata needed to read it.
    Fdatasync,
    /// Data and all of the inode.
    Fsync,
}

impl SyncCall {
    /// Returns its name as a system call.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
        }
    }
}

/// The part of a report that every timed workload has.
#[derive(Debug, Clone, Serialize)]
pub struct TimedReportHead {
    pub workload: &'static str,
    pub directory: PathBuf,
    pub seed: u64,
    pub clients: usize,
    pub client_kind: ClientKind,
    /// Time left out of the figures, s.
    pub warmup_s: f64,
    /// Length of the measured interval, s.
    pub measured_s: f64,
    /// Mean pause after each round, µs.
    pub think_us: f64,
    pub think_distribution: ThinkDistribution,
    /// Clients that are slow.
    #[serde(skip_serializing_if = "is_zero")]
    pub slow_clients: usize,
    /// Factor of a slow client's time for its rounds.
    #[serde(skip_serializing_if = "is_one")]
    pub slow_factor: f64,
    /// Processors that the clients kept busy, on average over warm-up and measured interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors_busy: Option<f64>,
    pub interrupted: bool,
    /// UNSAFE: fsyncs did nothing.
    #[serde(skip_serializing_if = "is_false")]
    pub no_fsync: bool,
}

impl TimedReportHead {
    /// Builds the head of a run without warm-up and pauses.
    pub fn new(
        workload: &'static str,
        directory: &Path,
        seed: u64,
        schedule: &RunSchedule,
        measured: &RunMeasurement,
    ) -> Self {
        Self {
            workload,
            directory: directory.to_path_buf(),
            seed,
            clients: schedule.clients,
            client_kind: schedule.kind,
            warmup_s: 0.0,
            measured_s: measured.interval_ns as f64 / 1e9,
            think_us: 0.0,
            think_distribution: ThinkDistribution::Constant,
            slow_clients: 0,
            slow_factor: 1.0,
            processors_busy: None,
            interrupted: measured.interrupted,
            no_fsync: false,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(super) fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_one(value: &f64) -> bool {
    *value <= 1.0
}

/// Checks that a record of `record_bytes` fits into a file of `file_bytes`, which the user gave by `option`.
pub(super) fn checked_record(
    record_bytes: u64,
    option: &str,
    file_bytes: u64,
) -> Result<(), BenchError> {
    if record_bytes == 0 {
        return Err(BenchError::Input {
            option: format!("--record-size {record_bytes}"),
            reason: "nothing to write",
            advice: "use at least 1 byte",
        });
    }
    if record_bytes > file_bytes {
        return Err(BenchError::Input {
            option: format!("--record-size {record_bytes} with {option} {file_bytes}"),
            reason: "a record does not fit into the file",
            advice: "use smaller records or a larger file",
        });
    }
    Ok(())
}

/// Waits until all that was written to the file system of `directory` is on its disk.
pub(super) fn sync_file_system(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(directory)?)?)
}

/// A workload's own part: its preparation before the clients start, and the work of each client.
pub(super) trait TimedWorkload: Sync {
    const NAME: &'static str;
    /// Names of the operations that it measures.
    const OPERATIONS: &'static [&'static str];
    /// State that all clients share, such as paths.
    type Shared: Sync;
    /// State of one client: buffers, random numbers.
    type Own;

    /// Makes files and directories below `scratch`.
    fn make(&self, scratch: &Path) -> Result<Self::Shared, BenchError>;

    /// Makes a client's own state, before any client starts.
    fn prepare(
        &self,
        shared: &Self::Shared,
        client: &WorkloadClient<'_>,
    ) -> Result<Self::Own, ClientFault>;

    /// Works until the end of the run.
    fn work(
        &self,
        shared: &Self::Shared,
        client: &WorkloadClient<'_>,
        own: Self::Own,
    ) -> Result<(), ClientFault>;
}

/// Outcome of a timed run: head of its report, and its measurement.
pub(super) struct TimedRunOutcome {
    pub(super) head: TimedReportHead,
    pub(super) measured: RunMeasurement,
}

/// Runs `workload` in a fresh directory, which is gone afterwards.
pub(super) fn run<W: TimedWorkload>(
    workload: &W,
    timed: &TimedPlan,
    tick: &mut dyn FnMut(RunProgress),
) -> Result<TimedRunOutcome, BenchError> {
    timed.think.check(timed.schedule.clients)?;
    let scratch = ScratchDirectory::create(&timed.directory)?;
    let shared = workload.make(scratch.path())?;
    if interrupt_flag::interrupted() {
        return Err(BenchError::Interrupted);
    }
    let (began_ns, spent_before_s) = (now_ns(), processor_time::spent_s());
    let measured = workers::run(
        &timed.schedule,
        W::OPERATIONS.len(),
        |client| workload.prepare(&shared, client),
        |client, own| workload.work(&shared, client, own),
        tick,
    )
    .map_err(|failure| explain(&timed.directory, W::OPERATIONS, failure))?;
    let ran_s = (now_ns() - began_ns) as f64 / 1e9;
    let processors_busy = processor_time::spent_s()
        .zip(spent_before_s)
        .map(|(after, before)| (after - before) / ran_s);
    drop(shared);
    scratch.remove()?;
    let think = &timed.think;
    let has_slow = think.slow_clients > 0;
    let head = TimedReportHead {
        warmup_s: timed.schedule.warmup_ns as f64 / 1e9,
        think_us: think.mean_ns as f64 / 1e3,
        think_distribution: think.distribution,
        slow_clients: think.slow_clients,
        slow_factor: if has_slow { think.slow_factor } else { 1.0 },
        processors_busy,
        no_fsync: timed.no_fsync,
        ..TimedReportHead::new(W::NAME, &timed.directory, timed.seed, &timed.schedule, &measured)
    };
    Ok(TimedRunOutcome { head, measured })
}

impl TimedRunOutcome {
    /// Returns the latencies of these operations, in their order.
    pub(super) fn latencies(&self, names: &[&'static str]) -> Vec<LatencyFigures> {
        let figures = |(operation, name): (usize, &&'static str)| {
            self.measured.latency(operation).figures(*name)
        };
        names.iter().enumerate().map(figures).collect()
    }

    /// Converts a count to a rate per second of the measured interval.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.head.measured_s
    }
}
