//! Forecasts the outcome of tasks under a policy: the policy itself on a model of the disk, in virtual time.
//!
//! A forecast is deterministic: the same tasks on the same disk always have the same outcome. The policy is the one
//! that decides on real disks, so a forecast cannot drift apart from it. Only the disk ([`DiskModel`]) and the tasks
//! ([`TaskWork`]) are simplified. `luc throttle advise` fits both to what it observes ([`fit_model`]).

pub mod fit_model;
mod simulated_task;
mod simulation;

use super::policy_input::{TaskClass, ThrottleDecision, ThrottlePolicy, ThrottleSample};
pub use simulation::run_beside;

/// Size of a stream's request at a usual read-ahead, bytes.
pub const STREAM_REQUEST_BYTES: u64 = 128 << 10;

/// Distance of a request from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessDistance {
    /// It begins where the one before ended.
    Next,
    /// It is elsewhere in the files of the same task.
    Near,
    /// It is in the files of another task.
    Far,
}

/// Timing model of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskModel {
    /// Transfer rate once the head is in place, bytes per second.
    pub bytes_per_s: f64,
    /// Time before a request elsewhere in the files of the same task, ns.
    pub near_ns: u64,
    /// Time before a request in the files of another task, ns.
    pub far_ns: u64,
    /// Fixed time of each request, ns.
    pub request_ns: u64,
    /// Number of requests that it serves at a time.
    pub slots: usize,
}

impl DiskModel {
    /// Time that a request takes, ns.
    #[must_use]
    pub fn service_ns(&self, bytes: u64, access: AccessDistance) -> u64 {
        let there_ns = match access {
            AccessDistance::Next => 0,
            AccessDistance::Near => self.near_ns,
            AccessDistance::Far => self.far_ns,
        };
        (bytes as f64 * 1e9 / self.bytes_per_s) as u64 + there_ns + self.request_ns
    }
}

/// Call that ends a task, such as an fsync. No freeze stops it once it has begun. The disk's cache collects and sorts
/// its writes. So they do not move the arm away from a reader for each request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FinalSync {
    /// Bytes of all its requests.
    pub bytes: u64,
    /// Bytes of each request.
    pub request_bytes: u64,
    /// Part of the requests that do not continue the one before: 0 to 1.
    pub jumps: f64,
}

/// Description of a task's work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskWork {
    /// Permission to freeze the task.
    pub class: TaskClass,
    /// Its share of the disk relative to other tasks; 100 is usual.
    pub weight: u32,
    /// Rate of the disk where this task's data is, bytes per second; `None`: the disk's usual rate.
    pub bytes_per_s: Option<f64>,
    /// Time at which it begins, ns.
    pub start_ns: u64,
    /// Bytes in all; `u64::MAX`: it does not end.
    pub bytes: u64,
    /// Bytes of each request.
    pub request_bytes: u64,
    /// Number of requests that it has outstanding at a time.
    pub depth: u32,
    /// Part of its requests that do not continue its request before: 0 a stream, 1 random.
    pub jumps: f64,
    /// Think time before its first request, ns.
    pub before_ns: u64,
    /// Think time after its last request, ns.
    pub after_ns: u64,
    /// Processors that it keeps busy while it thinks: 0 if it sleeps.
    pub processors: f64,
    /// Time from each completion to the next request, ns, without read-ahead.
    pub pause_ns: u64,
    /// Number of requests after which it computes, and the time that it computes then, ns.
    pub phase: Option<(u64, u64)>,
    /// Shortest time from a request to the next, ns: it thinks while the next one is read ahead.
    pub period_ns: Option<u64>,
    /// Call that ends it, if there is one.
    pub last_call: Option<FinalSync>,
    /// Whether the policy knows what it has yet to move.
    pub is_size_known: bool,
    /// Target for the 99th percentile of its waits, ns; only for a protected task.
    pub p99_ns: Option<u64>,
}

impl TaskWork {
    /// Describes a task that reads a file from end to end.
    #[must_use]
    pub fn stream(bytes: u64) -> Self {
        Self {
            weight: 100,
            bytes,
            request_bytes: STREAM_REQUEST_BYTES,
            depth: 1,
            is_size_known: true,
            ..Self::default()
        }
    }
}

/// Outcome of a run. Times are from its beginning.
#[derive(Clone, Debug, Default)]
pub struct ForecastOutcome {
    /// Finish of each task, ns; 0: not within the time.
    pub finish_ns: Vec<u64>,
    /// Time that each task took, ns.
    pub took_ns: Vec<u64>,
    /// Longest freeze of each task, ns.
    pub longest_frozen_ns: Vec<u64>,
    /// Latency of each request of each task, ns.
    pub latencies_ns: Vec<Vec<u64>>,
    /// Bytes moved by each task.
    pub bytes: Vec<u64>,
    /// Longest time in which the disk was idle and all present batch tasks were frozen, ns.
    pub idle_frozen_ns: u64,
    /// Number of orders given.
    pub orders: usize,
    /// Time at which the run ended, ns.
    pub end_ns: u64,
}

impl ForecastOutcome {
    /// Finish of the last task, ns.
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

/// A policy that never freezes a task.
#[derive(Clone, Copy, Debug)]
pub struct NeverFreeze;

impl ThrottlePolicy for NeverFreeze {
    fn decide(&mut self, sample: &ThrottleSample<'_>) -> ThrottleDecision {
        ThrottleDecision { orders: Vec::new(), look_again_ns: sample.now_ns + 1_000_000_000 }
    }
}

/// Runs tasks on a disk under a policy, until all tasks that end have ended, or for `limit_ns`.
pub fn run(
    disk: &DiskModel,
    specs: &[TaskWork],
    policy: &mut dyn ThrottlePolicy,
    limit_ns: u64,
) -> ForecastOutcome {
    run_beside(disk, f64::INFINITY, specs, policy, limit_ns)
}

/// Time that each task takes alone, ns.
#[must_use]
pub fn alone_ns(disk: &DiskModel, specs: &[TaskWork]) -> Vec<u64> {
    let alone = |spec: &TaskWork| run(disk, &[*spec], &mut NeverFreeze, u64::MAX / 2).took_ns[0];
    specs.iter().map(alone).collect()
}
