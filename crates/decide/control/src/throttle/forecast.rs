//! What would become of tasks on a disk under a policy: the policy itself, on a model of the disk, in virtual time.
//!
//! Exact and without any chance: the same tasks on the same disk always come out alike. The policy is the one that
//! decides on real disks, so a forecast and what is done cannot drift apart; what is simple is the disk ([`DiskModel`])
//! and the tasks ([`Spec`]). `luc throttle advise` fits both to what it sees ([`fit`]).

pub mod fit;
mod simulation;
mod task;

use super::sample::{Class, Decision, Policy, Sample};

/// A request of a stream at a usual read-ahead, bytes.
pub const STREAM_REQUEST_BYTES: u64 = 128 << 10;

/// How far a request is from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It begins where that ended.
    Next,
    /// Elsewhere in the files of the same task.
    Near,
    /// In the files of another task.
    Far,
}

/// A disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskModel {
    /// What it moves once it is in place, bytes per second.
    pub bytes_per_s: f64,
    /// Time before a request elsewhere in the files of the same task, ns.
    pub near_ns: u64,
    /// Time before a request in the files of another task, ns.
    pub far_ns: u64,
    /// Time of each request besides, ns.
    pub request_ns: u64,
    /// Requests that it serves at a time.
    pub slots: usize,
}

impl DiskModel {
    /// How long a request takes, ns.
    #[must_use]
    pub fn service_ns(&self, bytes: u64, access: Access) -> u64 {
        let there_ns = match access {
            Access::Next => 0,
            Access::Near => self.near_ns,
            Access::Far => self.far_ns,
        };
        (bytes as f64 * 1e9 / self.bytes_per_s) as u64 + there_ns + self.request_ns
    }
}

/// What a task does in the call that ends it, such as an fsync: once it has begun no freeze stops it. What it writes is
/// collected by the disk's cache and put in order, so that it moves no arm away from a reader for each request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastCall {
    /// Bytes of all its requests.
    pub bytes: u64,
    /// Bytes of each.
    pub request_bytes: u64,
    /// The part of the requests that do not continue the one before: 0 to 1.
    pub jumps: f64,
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spec {
    /// What may be done to it.
    pub class: Class,
    /// Its share of the disk against that of others; 100 is usual.
    pub weight: u32,
    /// What the disk moves where this task's data is, bytes per second; `None`: as anywhere.
    pub bytes_per_s: Option<f64>,
    /// When it begins, ns.
    pub start_ns: u64,
    /// Bytes in all; `u64::MAX`: it does not end.
    pub bytes: u64,
    /// Bytes of each request.
    pub request_bytes: u64,
    /// Requests that it has out at a time.
    pub depth: u32,
    /// The part of its requests that do not continue its request before: 0 a stream, 1 random.
    pub jumps: f64,
    /// What it thinks before its first request, ns.
    pub before_ns: u64,
    /// What it thinks after its last request, ns.
    pub after_ns: u64,
    /// Processors that it keeps busy while it thinks: 0 where it sleeps.
    pub processors: f64,
    /// Time after each request before the next, ns: nothing is read ahead meanwhile.
    pub pause_ns: u64,
    /// After so many requests it computes for so long, ns.
    pub phase: Option<(u64, u64)>,
    /// Time from a request to the next at least, ns: it thinks while that is read ahead.
    pub period_ns: Option<u64>,
    /// What it does at its end.
    pub last_call: Option<LastCall>,
    /// Whether the policy is told what it has yet to move.
    pub is_size_known: bool,
    /// What 99 of 100 of its waits are to take at most, ns; only of a protected task.
    pub p99_ns: Option<u64>,
}

impl Spec {
    /// Reads a file from end to end.
    #[must_use]
    pub fn stream(bytes: u64) -> Self {
        Self {
            class: Class::Batch,
            weight: 100,
            bytes_per_s: None,
            start_ns: 0,
            bytes,
            request_bytes: STREAM_REQUEST_BYTES,
            depth: 1,
            jumps: 0.0,
            before_ns: 0,
            after_ns: 0,
            processors: 0.0,
            pause_ns: 0,
            phase: None,
            period_ns: None,
            last_call: None,
            is_size_known: true,
            p99_ns: None,
        }
    }
}

/// What came of a run. Times are from its beginning.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// When each task ended, ns; 0: not within the time.
    pub finish_ns: Vec<u64>,
    /// How long each took, ns.
    pub took_ns: Vec<u64>,
    /// The longest that each was frozen, ns.
    pub longest_frozen_ns: Vec<u64>,
    /// How long each request of each took, ns.
    pub latencies_ns: Vec<Vec<u64>>,
    /// Bytes of each.
    pub bytes: Vec<u64>,
    /// The longest time in which the disk did nothing and all batch tasks that were there were frozen, ns.
    pub idle_frozen_ns: u64,
    /// Orders given.
    pub orders: usize,
    /// When it ended, ns.
    pub end_ns: u64,
}

impl Outcome {
    /// When the last task was done, ns.
    #[must_use]
    pub fn makespan_ns(&self) -> u64 {
        self.finish_ns.iter().copied().max().unwrap_or(0)
    }

    /// Weighted speed-up against times alone: the sum of time alone over time taken.
    #[must_use]
    pub fn weighted_speedup(&self, alone_ns: &[u64]) -> f64 {
        let ratios = alone_ns.iter().zip(&self.took_ns);
        ratios.map(|(alone, took)| *alone as f64 / (*took).max(1) as f64).sum()
    }
}

/// The policy that does nothing.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Policy for Nothing {
    fn decide(&mut self, sample: &Sample<'_>) -> Decision {
        Decision { orders: Vec::new(), look_again_ns: sample.now_ns + 1_000_000_000 }
    }
}

/// Runs tasks on a disk under a policy until all that end have ended, or for `limit_ns`.
pub fn run(disk: &DiskModel, specs: &[Spec], policy: &mut dyn Policy, limit_ns: u64) -> Outcome {
    run_beside(disk, f64::INFINITY, specs, policy, limit_ns)
}

/// The same where the tasks share so many processors while they think.
pub fn run_beside(
    disk: &DiskModel,
    processors: f64,
    specs: &[Spec],
    policy: &mut dyn Policy,
    limit_ns: u64,
) -> Outcome {
    simulation::run(disk, processors, specs, policy, limit_ns)
}

/// How long each task takes alone, ns.
#[must_use]
pub fn alone_ns(disk: &DiskModel, specs: &[Spec]) -> Vec<u64> {
    let alone = |spec: &Spec| run(disk, &[*spec], &mut Nothing, u64::MAX / 2).took_ns[0];
    specs.iter().map(alone).collect()
}
