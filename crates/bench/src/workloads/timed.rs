//! What all workloads that run for a time share: their plan, their run, the head of their report.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::explain;
use crate::error::BenchError;
use crate::interrupt;
use crate::latency::LatencyFigures;
use crate::scratch::Scratch;
use crate::workers::{self, Client, ClientKind, Fault, Measured, Progress, Schedule};

/// The part of a plan that every timed workload has.
#[derive(Debug, Clone)]
pub struct Timed {
    /// A fresh subdirectory of this one is used and removed.
    pub directory: PathBuf,
    /// Clients and times.
    pub schedule: Schedule,
    /// Pause of a client after each round of its loop, ns.
    pub think_ns: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Fsyncs do nothing, which keeps nothing: what is left of the time without them.
    pub no_fsync: bool,
}

impl Timed {
    /// An fsync, where there are any.
    pub(super) fn sync(&self, file: &File) -> io::Result<()> {
        if self.no_fsync {
            return Ok(());
        }
        file.sync_all()
    }
}

/// The part of a report that every timed workload has.
#[derive(Debug, Clone, Serialize)]
pub struct Head {
    /// The workload's name.
    pub workload: &'static str,
    /// The directory given.
    pub directory: PathBuf,
    /// Seed.
    pub seed: u64,
    /// Number of clients.
    pub clients: usize,
    /// What a client was.
    pub client_kind: ClientKind,
    /// Time left out of the figures, s.
    pub warmup_s: f64,
    /// Length of the measured interval, s.
    pub measured_s: f64,
    /// Pause after each round, µs.
    pub think_us: f64,
    /// Whether a signal ended the run early.
    pub interrupted: bool,
    /// UNSAFE: fsyncs did nothing.
    #[serde(skip_serializing_if = "is_false")]
    pub no_fsync: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(super) fn is_false(value: &bool) -> bool {
    !*value
}

/// A workload's own part: what it makes before the clients start, and what each client does.
pub(super) trait Workload: Sync {
    /// Its name.
    const NAME: &'static str;
    /// Names of the operations that it measures.
    const OPERATIONS: &'static [&'static str];
    /// What all clients share: paths, states.
    type Shared: Sync;
    /// What a client has for itself: buffers, random numbers.
    type Own;

    /// Makes files and directories below `scratch`.
    fn make(&self, scratch: &Path) -> Result<Self::Shared, BenchError>;

    /// A client's own things, before any client starts.
    fn prepare(&self, shared: &Self::Shared, client: &Client<'_>) -> Result<Self::Own, Fault>;

    /// What a client does until the end of the run.
    fn work(&self, shared: &Self::Shared, client: &Client<'_>, own: Self::Own)
    -> Result<(), Fault>;
}

/// What a run came to.
pub(super) struct Outcome {
    pub(super) head: Head,
    pub(super) measured: Measured,
}

/// Runs `workload` in a fresh directory, which is gone afterwards.
pub(super) fn run<W: Workload>(
    workload: &W,
    timed: &Timed,
    tick: &mut dyn FnMut(Progress),
) -> Result<Outcome, BenchError> {
    let scratch = Scratch::create(&timed.directory)?;
    let shared = workload.make(scratch.path())?;
    if interrupt::interrupted() {
        return Err(BenchError::Interrupted);
    }
    let measured = workers::run(
        &timed.schedule,
        W::OPERATIONS.len(),
        |client| workload.prepare(&shared, client),
        |client, own| workload.work(&shared, client, own),
        tick,
    )
    .map_err(|failure| explain(&timed.directory, W::OPERATIONS, failure))?;
    drop(shared);
    scratch.remove()?;
    let head = Head {
        workload: W::NAME,
        directory: timed.directory.clone(),
        seed: timed.seed,
        clients: timed.schedule.clients,
        client_kind: timed.schedule.kind,
        warmup_s: timed.schedule.warmup_ns as f64 / 1e9,
        measured_s: measured.interval_ns as f64 / 1e9,
        think_us: timed.think_ns as f64 / 1e3,
        interrupted: measured.interrupted,
        no_fsync: timed.no_fsync,
    };
    Ok(Outcome { head, measured })
}

impl Outcome {
    /// The latencies of the operations named, in their order.
    pub(super) fn latencies(&self, names: &[&'static str]) -> Vec<LatencyFigures> {
        let figures = |(operation, name): (usize, &&'static str)| {
            self.measured.latency(operation).figures(*name)
        };
        names.iter().enumerate().map(figures).collect()
    }

    /// A count per second of the measured interval.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.head.measured_s
    }
}
