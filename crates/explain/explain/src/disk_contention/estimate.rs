//! Estimates the time that tasks would take one after the other.
//!
//! Take a request that continues its task's last one. Right after that one, it is assumed to take as long per byte as
//! undisturbed requests did. These are this task's, or all tasks' on this disk if these were faster or the task has
//! too few. Any other request is assumed to take the mean of its task's requests that came after its own. Where a
//! trace has neither, no gain is assumed.
//!
//! If tasks have one request out at a time, few requests come after one of their own task. Those that do are often no
//! better off: the task was late and the disk has to turn once more, or the disk answered late. Their mean would make
//! switches look cheap, so the [`prompt`](ContinuingRequests::prompt) ones count apart. Where each request comes after
//! another task's, times of several milliseconds show an [arm](ContinuingRequests::has_arm), and its rate is assumed.
//!
//! The time one after the other is the busy time together, minus the cost of switches, plus the tasks' pauses. While
//! tasks run together, others use these pauses.

use super::request_sum::{RequestSum, SumsByContinuity};
use super::task_requests::{ProcessKind, TaskRequests};
use super::{DiskSharing, Together, UndisturbedBasis};

/// Minimum number of requests for a mean.
const MIN_REQUESTS: u64 = 8;
/// Minimum number of prompt requests: fewer may be chance.
const MIN_PROMPT: u64 = 4;
/// Maximum number of requests per prompt one: a smaller share may be chance.
const MAX_PER_PROMPT: u64 = 4;
/// Divisor of the quantile of requests after another task's: a prompt request takes less than half of what all but one
/// in this many take.
const LATE_PARTS: usize = 10;
/// Minimum time, on a disk with an arm, of all but one in [`LATE_PARTS`] of the requests after another task's: a short
/// seek and some of a turn.
const MIN_ARM_NS: u64 = 2_000_000;
/// Minimum ratio of a fifth of these requests to that time. On emulated hard disks it was 1.2 to 2.4. On an emulated
/// disk that takes 6 ms for each request it was 1.03.
const MIN_ARM_SPREAD: f64 = 1.1;
const MIN_ARM_REQUESTS: usize = 20;
/// Assumed sequential speed of a disk with an arm, 50 MB/s: the inner tracks of a slow one.
const ARM_NS_PER_BYTE: f64 = 20.0;

/// Requests of all tasks on a disk that continue their task's last one.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContinuingRequests {
    /// Requests that came right after it.
    all: RequestSum,
    /// The prompt ones of them, which show the disk's speed.
    prompt: Option<RequestSum>,
    /// Whether it has an arm, by the requests after another task's.
    has_arm: bool,
}

impl ContinuingRequests {
    pub(super) fn of(sharing: &DiskSharing) -> Self {
        let mut all = RequestSum::default();
        for task in users(sharing) {
            all.add(&task.alone.continuing);
        }
        Self { all, prompt: Self::prompt(sharing), has_arm: Self::has_arm(sharing) }
    }

    /// Returns whether requests after another task's take as long, and vary as much, as on a disk with an arm.
    ///
    /// A disk without an arm may be as slow, such as a volume with a limited rate. It is assumed to serve several
    /// requests at once, or to take nearly the same time for each. If it serves several, times from end to end are
    /// short. Where that does not hold the figures are wrong. So they are used only for want of others, and marked as
    /// [assumed](super::UndisturbedBasis::Assumed).
    fn has_arm(sharing: &DiskSharing) -> bool {
        let late = users(sharing).flat_map(|task| task.late.times_ns());
        let mut times_ns: Vec<u64> = late.collect();
        if times_ns.len() < MIN_ARM_REQUESTS {
            return false;
        }
        times_ns.sort_unstable();
        let short_ns = times_ns[times_ns.len() / LATE_PARTS];
        let long_ns = times_ns[times_ns.len() * 4 / 5];
        short_ns >= MIN_ARM_NS && long_ns as f64 >= MIN_ARM_SPREAD * short_ns as f64
    }

    /// Returns the time per byte of requests that continue their task's last one and come right after it.
    fn ns_per_byte(&self) -> Option<f64> {
        let prompt = self.prompt.map(|sum| sum.ns as f64 / sum.bytes as f64);
        let seen = [mean_per_byte(&self.all), prompt];
        seen.into_iter().flatten().reduce(f64::min)
    }

    /// Sums the prompt requests. They continue their task's last one, and were issued after that one had been
    /// answered. They took less than half the 10th percentile of the task's requests after another's.
    ///
    /// Where a switch costs nothing, requests are assumed to take as long after a switch as without one. Then about a
    /// twentieth of the requests is below the limit if times are spread exponentially, or evenly from 0. If times
    /// have a minimum, fewer are. So a quarter, and at least four, is no chance: the probability is less than 1 %
    /// with 4 to 24 requests, and smaller with more. Requests that were issued before the last one was answered are
    /// left out. The disk answers several outstanding requests together, so the time between them means nothing.
    fn prompt(sharing: &DiskSharing) -> Option<RequestSum> {
        let (mut prompt, mut of) = (RequestSum::default(), 0);
        for task in users(sharing) {
            let Some(late_ns) = task.late.fastest(LATE_PARTS) else {
                continue;
            };
            prompt.add(&task.prompt.below(late_ns / 2));
            of += task.prompt.len() as u64;
        }
        (prompt.count >= MIN_PROMPT && prompt.count * MAX_PER_PROMPT >= of && prompt.bytes > 0)
            .then_some(prompt)
    }
}

/// Time of requests without a switch before them.
#[derive(Clone, Copy, Debug)]
pub(super) struct UndisturbedTimes {
    /// Measured time per byte of requests that continue the task's last one.
    ns_per_byte: Option<f64>,
    /// Assumed time per byte, if none were measured.
    assumed_ns_per_byte: Option<f64>,
    ns_per_request: Option<f64>,
}

impl UndisturbedTimes {
    pub(super) fn of(task: &TaskRequests, disk: &ContinuingRequests) -> Self {
        let own = mean_per_byte(&task.alone.continuing);
        let seen = [own, disk.ns_per_byte()];
        let elsewhere = &task.alone.elsewhere;
        Self {
            ns_per_byte: seen.into_iter().flatten().reduce(f64::min),
            assumed_ns_per_byte: disk.has_arm.then_some(ARM_NS_PER_BYTE),
            ns_per_request: mean(elsewhere, elsewhere.count),
        }
    }

    /// Counts the requests whose undisturbed time is unknown, and those for which it is assumed.
    fn not_seen(&self, switched: &SumsByContinuity) -> (u64, u64) {
        let SumsByContinuity { continuing, elsewhere } = switched;
        let (mut unknown, mut assumed) = (0, 0);
        if self.ns_per_byte.is_none() {
            match self.assumed_ns_per_byte {
                Some(_) => assumed += continuing.count,
                None => unknown += continuing.count,
            }
        }
        if self.ns_per_request.is_none() {
            unknown += elsewhere.count;
        }
        (unknown, assumed)
    }

    /// Bytes per second of requests that continue the task's last.
    pub(super) fn bytes_per_s(&self) -> Option<f64> {
        let ns = self.ns_per_byte.filter(|&ns| ns > 0.0)?;
        Some(1e9 / ns)
    }

    /// Returns the time that switches added to requests, in nanoseconds; negative if requests took less than without.
    pub(super) fn switch_ns(&self, switched: &SumsByContinuity) -> f64 {
        let added = |sum: &RequestSum, each: Option<f64>, amount: u64| {
            each.map_or(0.0, |each| sum.ns as f64 - each * amount as f64)
        };
        let SumsByContinuity { continuing, elsewhere } = switched;
        let per_byte = self.ns_per_byte.or(self.assumed_ns_per_byte);
        added(continuing, per_byte, continuing.bytes)
            + added(elsewhere, self.ns_per_request, elsewhere.count)
    }
}

/// Returns the mean of requests, if there are enough.
fn mean(sum: &RequestSum, amount: u64) -> Option<f64> {
    (sum.count >= MIN_REQUESTS && amount > 0).then(|| sum.ns as f64 / amount as f64)
}

fn mean_per_byte(sum: &RequestSum) -> Option<f64> {
    mean(sum, sum.bytes)
}

/// Times of all contended stretches, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ContentionEstimate {
    pub(super) switch_ns: f64,
    /// Time that the same requests would have taken one task after the other.
    pub(super) apart_ns: f64,
    pub(super) basis: UndisturbedBasis,
}

pub(super) fn users(sharing: &DiskSharing) -> impl Iterator<Item = &TaskRequests> {
    (sharing.tasks.iter()).filter(|task| task.kind == ProcessKind::User)
}

pub(super) fn estimate(sharing: &DiskSharing) -> ContentionEstimate {
    let disk = ContinuingRequests::of(sharing);
    let (mut switch_ns, mut thinking_ns) = (0.0, 0.0);
    let (mut switches, mut unknown, mut assumed) = (0, 0, 0);
    for task in users(sharing) {
        let undisturbed = UndisturbedTimes::of(task, &disk);
        let switched = &task.contended.switched;
        switch_ns += undisturbed.switch_ns(switched);
        thinking_ns += task.contended.thinking_ns as f64;
        switches += switched.continuing.count + switched.elsewhere.count;
        let (of_unknown, of_assumed) = undisturbed.not_seen(switched);
        unknown += of_unknown;
        assumed += of_assumed;
    }
    let basis = if unknown * 2 > switches {
        UndisturbedBasis::Unknown
    } else if assumed > 0 {
        UndisturbedBasis::Assumed
    } else {
        UndisturbedBasis::Seen
    };
    let &Together { wall_ns, busy_ns, .. } = &sharing.together;
    let switch_ns = switch_ns.clamp(0.0, busy_ns as f64);
    ContentionEstimate {
        switch_ns,
        apart_ns: (busy_ns as f64 - switch_ns + thinking_ns).min(wall_ns as f64),
        basis,
    }
}
