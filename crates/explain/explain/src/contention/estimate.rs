//! What tasks would take one after the other.
//!
//! A request that continues its task's last one would take, after that one, as long per byte as such requests took
//! when nobody came between: of this task, or of all on this disk if these were faster or it has too few. Any other
//! request would take the mean of those of its task that came after its own. Where a trace has neither, nothing is
//! assumed to be gained.
//!
//! Among tasks that have one request out at a time few requests come after one of their own task, and those that do
//! are often no better off than the others: the task was late, and the disk has to turn once more, or whoever answers
//! was late. Their mean then says that switches are cheap. So the [`prompt`](Disk::prompt) ones count apart. Where each
//! request comes after another task's, times of several milliseconds show an [arm](Disk::has_arm), and its rate is
//! assumed.
//!
//! The time one after the other is the busy time together, less what switches cost, and the tasks' own pauses, which
//! others use now.

use super::sum::{ByKind, Sum};
use super::task::{Kind, Task};
use super::{Basis, Sharing, Together};

/// Fewer requests tell no mean.
const MIN_REQUESTS: u64 = 8;
/// Fewer prompt requests may be chance,
const MIN_PROMPT: u64 = 4;
/// and so may less than one in so many.
const MAX_PER_PROMPT: u64 = 4;
/// Prompt is what takes less than half of what all but one in so many take after another task's request.
const LATE_PARTS: usize = 10;
/// A disk has an arm if all but one in [`LATE_PARTS`] of the requests after another task's take as long: a short seek
/// and some of a turn,
const MIN_ARM_NS: u64 = 2_000_000;
/// and a fifth of them so many times as long. Of emulated hard disks a fifth took 1.2 to 2.4 times as long, of an
/// emulated disk that takes 6 ms for each 1.03 times.
const MIN_ARM_SPREAD: f64 = 1.1;
const MIN_ARM_REQUESTS: usize = 20;
/// It reads on at 50 MB/s: the inner tracks of a slow one.
const ARM_NS_PER_BYTE: f64 = 20.0;

/// What all tasks on a disk tell about requests that continue their task's last one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disk {
    /// All that came right after it.
    all: Sum,
    /// Those of them that show what the disk can do.
    prompt: Option<Sum>,
    /// Whether it has an arm, as far as requests after another task's tell.
    has_arm: bool,
}

impl Disk {
    pub(super) fn of(sharing: &Sharing) -> Self {
        let mut all = Sum::default();
        for task in users(sharing) {
            all.add(&task.alone.continuing);
        }
        Self { all, prompt: Self::prompt(sharing), has_arm: Self::has_arm(sharing) }
    }

    /// Whether requests after another task's take as long as on a disk with an arm, and are as far apart: how far it
    /// moves and turns differs from one to the next.
    ///
    /// It assumes that a disk without an arm that takes so long, such as a volume with a limit on its rate, either
    /// serves several requests at once, so that the time from one end to the next is often much shorter, or takes
    /// nearly the same time for each. Where that does not hold the figures are wrong, so they are used for want of
    /// others only, and marked as [assumed](super::Basis::Assumed).
    fn has_arm(sharing: &Sharing) -> bool {
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

    /// Per byte, of requests that continue their task's last and come right after it.
    fn ns_per_byte(&self) -> Option<f64> {
        let prompt = self.prompt.map(|sum| sum.ns as f64 / sum.bytes as f64);
        let seen = [mean_per_byte(&self.all), prompt];
        seen.into_iter().flatten().reduce(f64::min)
    }

    /// Requests that continue, were issued when their task's last one had been answered, and took less than half as
    /// long as nine of ten of the task's requests took after another's.
    ///
    /// It assumes that a disk on which a switch costs nothing takes as long after a switch as without one, however its
    /// times are spread. About a twentieth of the requests is then below the limit if the times are spread
    /// exponentially or evenly from 0, and fewer if there is a least time. So a quarter, and four at least, is no
    /// chance: with 4 to 24 requests that has a probability of less than 1 %, with more of less. Requests that
    /// were issued before the last one was answered are left out, since of several at once the disk answers some
    /// together, and the time between these says nothing.
    fn prompt(sharing: &Sharing) -> Option<Sum> {
        let (mut prompt, mut of) = (Sum::default(), 0);
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

/// What requests take without a switch before them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undisturbed {
    /// Per byte, of requests that continue the task's last, as seen,
    ns_per_byte: Option<f64>,
    /// and as assumed where none were.
    assumed_ns_per_byte: Option<f64>,
    ns_per_request: Option<f64>,
}

impl Undisturbed {
    pub(super) fn of(task: &Task, disk: &Disk) -> Self {
        let own = mean_per_byte(&task.alone.continuing);
        let seen = [own, disk.ns_per_byte()];
        let elsewhere = &task.alone.elsewhere;
        Self {
            ns_per_byte: seen.into_iter().flatten().reduce(f64::min),
            assumed_ns_per_byte: disk.has_arm.then_some(ARM_NS_PER_BYTE),
            ns_per_request: mean(elsewhere, elsewhere.count),
        }
    }

    /// The requests among these of which nothing is known, and those of which it is assumed.
    fn not_seen(&self, switched: &ByKind) -> (u64, u64) {
        let ByKind { continuing, elsewhere } = switched;
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

    /// What switches added to requests, in nanoseconds; less than 0 if they took less than without.
    pub(super) fn switch_ns(&self, switched: &ByKind) -> f64 {
        let added = |sum: &Sum, each: Option<f64>, amount: u64| {
            each.map_or(0.0, |each| sum.ns as f64 - each * amount as f64)
        };
        let ByKind { continuing, elsewhere } = switched;
        let per_byte = self.ns_per_byte.or(self.assumed_ns_per_byte);
        added(continuing, per_byte, continuing.bytes)
            + added(elsewhere, self.ns_per_request, elsewhere.count)
    }
}

/// The mean of requests, if there are enough.
fn mean(sum: &Sum, amount: u64) -> Option<f64> {
    (sum.count >= MIN_REQUESTS && amount > 0).then(|| sum.ns as f64 / amount as f64)
}

fn mean_per_byte(sum: &Sum) -> Option<f64> {
    mean(sum, sum.bytes)
}

/// Times of all contended stretches, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    pub(super) switch_ns: f64,
    /// What the same would have taken one task after the other.
    pub(super) apart_ns: f64,
    pub(super) basis: Basis,
}

pub(super) fn users(sharing: &Sharing) -> impl Iterator<Item = &Task> {
    (sharing.tasks.iter()).filter(|task| task.kind == Kind::User)
}

pub(super) fn estimate(sharing: &Sharing) -> Estimate {
    let disk = Disk::of(sharing);
    let (mut switch_ns, mut thinking_ns) = (0.0, 0.0);
    let (mut switches, mut unknown, mut assumed) = (0, 0, 0);
    for task in users(sharing) {
        let undisturbed = Undisturbed::of(task, &disk);
        let switched = &task.contended.switched;
        switch_ns += undisturbed.switch_ns(switched);
        thinking_ns += task.contended.thinking_ns as f64;
        switches += switched.continuing.count + switched.elsewhere.count;
        let (of_unknown, of_assumed) = undisturbed.not_seen(switched);
        unknown += of_unknown;
        assumed += of_assumed;
    }
    let basis = if unknown * 2 > switches {
        Basis::Unknown
    } else if assumed > 0 {
        Basis::Assumed
    } else {
        Basis::Seen
    };
    let &Together { wall_ns, busy_ns, .. } = &sharing.together;
    let switch_ns = switch_ns.clamp(0.0, busy_ns as f64);
    Estimate {
        switch_ns,
        apart_ns: (busy_ns as f64 - switch_ns + thinking_ns).min(wall_ns as f64),
        basis,
    }
}
