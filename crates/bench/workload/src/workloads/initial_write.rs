//! Initial write: every client writes its own new file, all at once (IOzone's test 0 with `-t`).
//!
//! A child does the same as in IOzone's `thread_write_test`. It creates its file, waits at the barrier, takes its
//! start time, and writes its records one after the other. It takes its end time before or after fsync and close
//! (`-e`, `-c`). Untimed calls follow at once, so every child syncs its file while others still write.
//!
//! "Children" is the sum of the children's own rates. "Parent" is all bytes over the time from the first start to the
//! last end.
//!
//! Different here: a finished child stops no other (IOzone's `-x`). All children are released at once instead of one
//! after the other. Files are not written a second time. There are several rounds.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use luc_host::interrupt_flag;
use luc_stats::seeded_random;
use luc_stats::{median, median_interval};
use serde::Serialize;

use super::explain;
use super::timed_run::{is_false, sync_file_system};
use crate::error::BenchError;
use crate::latency::{LatencyFigures, LatencyRecorders, OperationLatency};
use crate::scratch_directory::ScratchDirectory;
use crate::shared_memory::SharedSlice;
use crate::workers::{self, Arrivals, ClientFault, ClientKind, WorkloadClient, now_ns, used_ns};

const OPERATIONS: [&str; 5] = ["open", "write", "fsync", "close", "child"];
const OPEN: usize = 0;
const WRITE: usize = 1;
const FSYNC: usize = 2;
const CLOSE: usize = 3;
/// Operation that stands for the whole time of a child.
const CHILD: usize = 4;
/// Factor over the fastest child of a round from which on a child counts as blocked.
const BLOCKED_FACTOR: u64 = 10;

#[derive(Debug, Clone)]
pub struct InitialWrite {
    /// A fresh subdirectory of this one is used and removed.
    pub directory: PathBuf,
    pub clients: usize,
    pub kind: ClientKind,
    pub file_size_bytes: u64,
    pub record_size_bytes: u64,
    /// Calls that are timed besides the writes.
    pub include: TimedChildCalls,
    /// A directory per child instead of one that all share.
    pub directory_per_client: bool,
    /// Rounds, each with new files.
    pub rounds: usize,
    /// Arrivals of the children in a round; absent: at once.
    pub arrivals: Option<Arrivals>,
    /// Time of copying a KiB besides the processor's own work, in ns of processor time, whatever its speed. It stands
    /// for copies that memory limits.
    pub copy_ns_per_kib: u64,
    pub seed: u64,
    /// Makes fsyncs do nothing and keep nothing, to measure the time left without them.
    pub no_fsync: bool,
}

/// Calls that a child's time covers besides its writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TimedChildCalls {
    /// The fsync (IOzone's `-e`).
    pub fsync: bool,
    /// The close (IOzone's `-c`), and with it the fsync before it.
    pub close: bool,
}

/// The throughput of one round, KiB/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ThroughputRound {
    /// Sum of the children's own rates.
    pub children_kib_per_second: f64,
    /// All bytes over the time from the first start to the last end.
    pub parent_kib_per_second: f64,
    /// Children that took ten times as long as the fastest one, or longer.
    pub blocked_children: usize,
}

/// A median over the rounds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ThroughputMedian {
    pub median: f64,
    pub mean: f64,
    /// 95 % interval of the median; absent for fewer than 6 rounds.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// Report of the workload `initial-write`.
#[derive(Debug, Clone, Serialize)]
pub struct InitialWriteReport {
    pub workload: &'static str,
    pub directory: PathBuf,
    pub seed: u64,
    pub clients: usize,
    pub client_kind: ClientKind,
    pub file_size_bytes: u64,
    pub record_size_bytes: u64,
    /// Whether each child had a directory of its own.
    pub directory_per_client: bool,
    /// Arrivals of the children in a round; absent: at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Time of copying a KiB besides the processor's own work, ns; absent: nothing.
    #[serde(skip_serializing_if = "is_zero")]
    pub copy_ns_per_kib: u64,
    pub include: TimedChildCalls,
    /// Whether a signal ended the run early; the round that it hit is left out.
    pub interrupted: bool,
    /// UNSAFE: fsyncs did nothing.
    #[serde(skip_serializing_if = "is_false")]
    pub no_fsync: bool,
    pub rounds: Vec<ThroughputRound>,
    /// Sum of the children's own rates, KiB/s.
    pub children_kib_per_second: ThroughputMedian,
    /// All bytes over the time from the first start to the last end, KiB/s.
    pub parent_kib_per_second: ThroughputMedian,
    /// Children of a round that took ten times as long as the fastest one or longer, mean over the rounds.
    pub blocked_children: f64,
    /// Latencies over all rounds; `child` is all that a child's clock covers.
    pub operations: Vec<LatencyFigures>,
}

/// Start and end of each child in a round, ns: two words each.
type Times = SharedSlice<AtomicU64>;

/// Runs the rounds. `tick` gets the number of finished rounds.
///
/// # Errors
/// [`BenchError`]: a size or number is out of range, or a client could not start. Or the directory cannot be used or
/// is full.
pub fn run(
    plan: &InitialWrite,
    tick: &mut dyn FnMut(usize),
) -> Result<InitialWriteReport, BenchError> {
    check(plan)?;
    let scratch = ScratchDirectory::create(&plan.directory)?;
    let failed = |failure| explain(&plan.directory, &OPERATIONS, failure);
    let recorders = workers::recorders(plan.clients, OPERATIONS.len()).map_err(failed)?;
    let times = Times::new(2 * plan.clients)
        .map_err(|error| BenchError::operation(&plan.directory, "taking memory", error))?;
    for client in (0..plan.clients).filter(|_| plan.directory_per_client) {
        let path = plan.directory_of(scratch.path(), client);
        fs::create_dir(&path).map_err(|error| BenchError::directory(&path, error))?;
    }
    let mut rounds = Vec::with_capacity(plan.rounds);
    while rounds.len() < plan.rounds {
        // Writeback of the last round must not overlap this one.
        sync_file_system(scratch.path())
            .map_err(|error| BenchError::operation(&plan.directory, "syncing", error))?;
        if interrupt_flag::interrupted()
            || !one_round(plan, rounds.len(), scratch.path(), &recorders, &times).map_err(failed)?
        {
            break;
        }
        rounds.push(throughput(plan.file_size_bytes, &times));
        tick(rounds.len());
        remove_files(scratch.path())
            .map_err(|error| BenchError::operation(&plan.directory, "removing files", error))?;
    }
    scratch.remove()?;
    report(plan, rounds, &recorders).ok_or(BenchError::Interrupted)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn check(plan: &InitialWrite) -> Result<(), BenchError> {
    let refuse = |option: String, reason, advice| Err(BenchError::Input { option, reason, advice });
    if !(1..=4096).contains(&plan.clients) {
        let option = format!("--threads {}", plan.clients);
        return refuse(option, "not a number of clients", "use 1 to 4096");
    }
    if !(1..=1_000_000).contains(&plan.rounds) {
        let option = format!("--rounds {}", plan.rounds);
        return refuse(option, "out of range", "use 1 to 1000000 rounds");
    }
    let (file, record) = (plan.file_size_bytes, plan.record_size_bytes);
    if record == 0 || file == 0 || !file.is_multiple_of(record) {
        return refuse(
            format!("--file-size {file} --record-size {record}"),
            "a file is not a whole number of records",
            "use a multiple, as in --file-size 128k --record-size 32k",
        );
    }
    Ok(())
}

/// Removes the files in a directory, and in those that are in it.
fn remove_files(directory: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_files(&entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

impl InitialWrite {
    fn directory_of(&self, scratch: &Path, client: usize) -> PathBuf {
        if self.directory_per_client {
            scratch.join(format!("client{client:04}"))
        } else {
            scratch.to_path_buf()
        }
    }
}

/// Runs one round. Returns whether all children finished their work.
fn one_round(
    plan: &InitialWrite,
    round: usize,
    scratch: &Path,
    recorders: &LatencyRecorders,
    times: &Times,
) -> Result<bool, workers::RunFailure> {
    let prepare = |client: &WorkloadClient<'_>| {
        let mut random = seeded_random::stream(plan.seed, client.index as u64);
        let record = seeded_random::bytes(&mut random, plan.record_size_bytes as usize);
        let name = format!("child{:04}", client.index);
        let path = plan.directory_of(scratch, client.index).join(name);
        let start = now_ns();
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(ClientFault::of(OPEN))?;
        client.record(OPEN, now_ns() - start);
        Ok((file, record))
    };
    let body = |client: &WorkloadClient<'_>, (file, record): (File, Vec<u8>)| {
        let child = &times[2 * client.index..][..2];
        if let Some(arrivals) = &plan.arrivals {
            arrivals.wait(client, plan.seed, round, plan.clients);
        }
        write_file(plan, client, child, file, &record)
    };
    workers::run_to_end(plan.clients, plan.kind, recorders, prepare, body)
}

/// Writes a child's file, from the barrier on.
fn write_file(
    plan: &InitialWrite,
    client: &WorkloadClient<'_>,
    times: &[AtomicU64],
    mut file: File,
    record: &[u8],
) -> Result<(), ClientFault> {
    let start = now_ns();
    let mut before = start;
    for _ in 0..plan.file_size_bytes / plan.record_size_bytes {
        if !client.running(before) {
            return Ok(());
        }
        copy(plan.copy_ns_per_kib.saturating_mul(plan.record_size_bytes) / 1024);
        file.write_all(record).map_err(ClientFault::of(WRITE))?;
        let after = now_ns();
        client.record(WRITE, after - before);
        before = after;
    }
    let written = before;
    if !plan.no_fsync {
        file.sync_all().map_err(ClientFault::of(FSYNC))?;
    }
    let synced = now_ns();
    client.record(FSYNC, synced - written);
    drop(file);
    let closed = now_ns();
    client.record(CLOSE, closed - synced);
    let end = match plan.include {
        TimedChildCalls { close: true, .. } => closed,
        TimedChildCalls { fsync: true, .. } => synced,
        TimedChildCalls { .. } => written,
    };
    client.record(CHILD, end - start);
    times[0].store(start, Ordering::Release);
    times[1].store(end, Ordering::Release);
    Ok(())
}

/// Keeps the processor busy for `ns` of the thread's own time.
fn copy(ns: u64) {
    if ns == 0 {
        return;
    }
    let end = used_ns() + ns;
    while used_ns() < end {
        std::hint::spin_loop();
    }
}

fn throughput(file_size_bytes: u64, times: &[AtomicU64]) -> ThroughputRound {
    let kib = file_size_bytes as f64 / 1024.0;
    let children: Vec<(u64, u64)> = times
        .chunks_exact(2)
        .map(|pair| (pair[0].load(Ordering::Acquire), pair[1].load(Ordering::Acquire)))
        .collect();
    let rate = |kib: f64, ns: u64| kib / (ns.max(1) as f64 / 1e9);
    let first = children.iter().map(|child| child.0).min().unwrap_or(0);
    let last = children.iter().map(|child| child.1).max().unwrap_or(0);
    let took = || {
        let each = children.iter();
        each.map(|(start, end)| end.saturating_sub(*start).max(1))
    };
    let bound = BLOCKED_FACTOR * took().min().unwrap_or(1);
    ThroughputRound {
        blocked_children: took().filter(|&ns| ns >= bound).count(),
        children_kib_per_second: took().map(|ns| rate(kib, ns)).sum(),
        parent_kib_per_second: rate(kib * children.len() as f64, last.saturating_sub(first)),
    }
}

fn report(
    plan: &InitialWrite,
    rounds: Vec<ThroughputRound>,
    recorders: &LatencyRecorders,
) -> Option<InitialWriteReport> {
    let figure = |of: fn(&ThroughputRound) -> f64| {
        let figures: Vec<f64> = rounds.iter().map(of).collect();
        let interval = median_interval(&figures);
        Some(ThroughputMedian {
            median: median(&figures)?,
            mean: figures.iter().sum::<f64>() / figures.len() as f64,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
        })
    };
    let latency =
        |operation: usize| -> OperationLatency { recorders.summary(plan.clients, operation) };
    Some(InitialWriteReport {
        workload: "initial-write",
        directory: plan.directory.clone(),
        seed: plan.seed,
        directory_per_client: plan.directory_per_client,
        arrivals: plan.arrivals.clone(),
        copy_ns_per_kib: plan.copy_ns_per_kib,
        clients: plan.clients,
        client_kind: plan.kind,
        file_size_bytes: plan.file_size_bytes,
        record_size_bytes: plan.record_size_bytes,
        include: plan.include,
        interrupted: rounds.len() < plan.rounds,
        no_fsync: plan.no_fsync,
        children_kib_per_second: figure(|round| round.children_kib_per_second)?,
        parent_kib_per_second: figure(|round| round.parent_kib_per_second)?,
        blocked_children: rounds.iter().map(|round| round.blocked_children as f64).sum::<f64>()
            / rounds.len() as f64,
        operations: OPERATIONS
            .iter()
            .enumerate()
            .map(|(operation, name)| latency(operation).figures(*name))
            .collect(),
        rounds,
    })
}

#[cfg(test)]
mod tests;
