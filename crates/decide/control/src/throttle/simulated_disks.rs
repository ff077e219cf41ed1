//! Simulated disks with tasks, to test policies on. Tests only.

mod properties;
mod required_figures;

use super::forecast::{self, DiskModel, NeverFreeze, TaskWork};
use super::policy_input::{
    FreezeAction, TaskClass, TaskId, ThrottleDecision, ThrottlePolicy, ThrottleSample,
};

const MS: u64 = 1_000_000;
/// Size of a stream's request, bytes.
const BLOCK: u64 = forecast::STREAM_REQUEST_BYTES;

/// Kinds of simulated disks.
#[derive(Clone, Copy, Debug)]
enum TestDisk {
    /// One request at a time, 105 MB/s, and 12 ms before a request that does not continue the last one.
    Arm,
    /// Two requests at a time, each with an arm of its own, as if striped over two disks.
    Pair,
    /// Eight requests at a time, each 60 us and 250 MB/s.
    Flash,
    /// A volume limited to 200 MB/s, one request at a time.
    Cloud,
}

impl TestDisk {
    fn model(self) -> DiskModel {
        let model = |slots, mb_per_s: f64, seek_ns, request_ns| DiskModel {
            bytes_per_s: mb_per_s * 1e6,
            near_ns: seek_ns,
            far_ns: seek_ns,
            request_ns,
            slots,
        };
        match self {
            Self::Arm => model(1, 105.0, 12 * MS, 0),
            Self::Pair => model(2, 105.0, 12 * MS, 0),
            Self::Flash => model(8, 250.0, 0, 60_000),
            Self::Cloud => model(1, 200.0, 0, 0),
        }
    }
}

impl TaskWork {
    /// Reads 4 KiB at random positions.
    fn random(requests: u64) -> Self {
        Self { bytes: requests * 4096, request_bytes: 4096, jumps: 1.0, ..Self::stream(0) }
    }

    /// Reads 4 KiB at random positions at intervals, is protected, and does not end.
    fn client(period_ns: u64) -> Self {
        Self {
            class: TaskClass::Protected,
            bytes: u64::MAX,
            period_ns: Some(period_ns),
            is_size_known: false,
            ..Self::random(1)
        }
    }

    fn unknown(self) -> Self {
        Self { is_size_known: false, ..self }
    }

    fn deep(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    fn pausing(self, pause_ns: u64) -> Self {
        Self { pause_ns, ..self }
    }

    fn computing(self, requests: u64, compute_ns: u64) -> Self {
        Self { phase: Some((requests, compute_ns)), ..self }
    }

    fn from(self, start_ns: u64) -> Self {
        Self { start_ns, ..self }
    }
}

/// Outcome of a run, with the rules that the policy broke.
#[derive(Debug)]
struct CheckedRun {
    ran: forecast::ForecastOutcome,
    violations: Vec<String>,
}

impl std::ops::Deref for CheckedRun {
    type Target = forecast::ForecastOutcome;

    fn deref(&self) -> &forecast::ForecastOutcome {
        &self.ran
    }
}

impl CheckedRun {
    /// Mean latency of a task's requests, ns.
    fn mean_latency_ns(&self, task: usize) -> f64 {
        let all = &self.latencies_ns[task];
        all.iter().sum::<u64>() as f64 / all.len() as f64
    }
}

/// A policy whose decisions are checked.
struct CheckedPolicy<'p> {
    policy: &'p mut dyn ThrottlePolicy,
    violations: Vec<String>,
}

impl ThrottlePolicy for CheckedPolicy<'_> {
    fn decide(&mut self, sample: &ThrottleSample<'_>) -> ThrottleDecision {
        let decision = self.policy.decide(sample);
        self.check(&decision, sample);
        decision
    }
}

impl CheckedPolicy<'_> {
    fn check(&mut self, decision: &ThrottleDecision, sample: &ThrottleSample<'_>) {
        let (now_ns, there) = (sample.now_ns, sample.tasks);
        let mut broken = |what: &str| self.violations.push(format!("{what} at {now_ns} ns"));
        if !decision.orders.is_sorted_by_key(|order| order.action) {
            broken("a freeze before a thaw");
        }
        if decision.look_again_ns <= now_ns || decision.look_again_ns > now_ns + 1_000 * MS {
            broken("a next look at no sensible time");
        }
        let mut ordered: Vec<TaskId> = Vec::new();
        for order in &decision.orders {
            match there.iter().find(|task| task.task == order.task) {
                None => broken("an order for a task that does not exist"),
                Some(task) if task.class != TaskClass::Batch => {
                    broken("an order for a task that is not batch")
                }
                Some(task) if task.frozen == (order.action == FreezeAction::Freeze) => {
                    broken("an order that changes nothing")
                }
                Some(_) if ordered.contains(&order.task) => broken("two orders for one task"),
                Some(_) => ordered.push(order.task),
            }
        }
    }
}

fn run(
    disk: TestDisk,
    specs: &[TaskWork],
    policy: &mut dyn ThrottlePolicy,
    limit_ns: u64,
) -> CheckedRun {
    let mut checked = CheckedPolicy { policy, violations: Vec::new() };
    let ran = forecast::run(&disk.model(), specs, &mut checked, limit_ns);
    CheckedRun { ran, violations: checked.violations }
}

fn alone_ns(disk: TestDisk, specs: &[TaskWork]) -> Vec<u64> {
    forecast::alone_ns(&disk.model(), specs)
}
