//! What tasks would take one after the other.
//!
//! A request that continues its task's last one would take, after that one, as long per byte as such requests took
//! when nobody came between: of this task, or of all on this disk if these were faster or it has too few. Any other request would take the
//! mean of those of its task that came after its own. Where a trace has neither, nothing is assumed to be gained.
//!
//! The time one after the other is the busy time together, less what switches cost, and the tasks' own pauses, which
//! others use now.

use super::task::{ByKind, Kind, Sum, Task};
use super::{Sharing, Together};

/// Fewer requests tell no mean.
const MIN_REQUESTS: u64 = 8;

/// What requests take without a switch before them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undisturbed {
    /// Per byte, of requests that continue the task's last.
    ns_per_byte: Option<f64>,
    /// Each, of others.
    ns_per_request: Option<f64>,
}

impl Undisturbed {
    pub(super) fn of(task: &Task, disk: &Sum) -> Self {
        let per = |sum: &Sum, amount: u64| {
            (sum.count >= MIN_REQUESTS && amount > 0).then(|| sum.ns as f64 / amount as f64)
        };
        let per_byte = |sum: &Sum| per(sum, sum.bytes);
        let rates = [per_byte(&task.alone.continuing), per_byte(disk)];
        let elsewhere = &task.alone.elsewhere;
        Self {
            ns_per_byte: rates.into_iter().flatten().reduce(f64::min),
            ns_per_request: per(elsewhere, elsewhere.count),
        }
    }

    /// Bytes per second of requests that continue the task's last.
    pub(super) fn bytes_per_s(&self) -> Option<f64> {
        let ns = self.ns_per_byte.filter(|&ns| ns > 0.0)?;
        Some(1e9 / ns)
    }

    /// What switches added to requests, in nanoseconds; less than 0 if they took less than without.
    pub(super) fn switch_ns(&self, switched: &ByKind) -> f64 {
        let added = |sum: &Sum, each: Option<f64>, amount: u64| {
            each.map_or(0.0, |each| sum.ns as f64 - each * amount as f64)
        };
        let ByKind {
            continuing,
            elsewhere,
        } = switched;
        added(continuing, self.ns_per_byte, continuing.bytes)
            + added(elsewhere, self.ns_per_request, elsewhere.count)
    }
}

/// Times of all contended stretches, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    /// What switches cost.
    pub(super) switch_ns: f64,
    /// What the same would have taken one task after the other.
    pub(super) apart_ns: f64,
}

/// All requests of a disk that continued their task's last one and came right after it.
pub(super) fn continuing(sharing: &Sharing) -> Sum {
    let mut sum = Sum::default();
    for task in users(sharing) {
        sum.add(&task.alone.continuing);
    }
    sum
}

pub(super) fn users(sharing: &Sharing) -> impl Iterator<Item = &Task> {
    (sharing.tasks.iter()).filter(|task| task.kind == Kind::User)
}

pub(super) fn estimate(sharing: &Sharing) -> Estimate {
    let disk = continuing(sharing);
    let (mut switch_ns, mut thinking_ns) = (0.0, 0.0);
    for task in users(sharing) {
        switch_ns += Undisturbed::of(task, &disk).switch_ns(&task.contended.switched);
        thinking_ns += task.contended.thinking_ns as f64;
    }
    let &Together {
        wall_ns, busy_ns, ..
    } = &sharing.together;
    let switch_ns = switch_ns.clamp(0.0, busy_ns as f64);
    Estimate {
        switch_ns,
        apart_ns: (busy_ns as f64 - switch_ns + thinking_ns).min(wall_ns as f64),
    }
}
