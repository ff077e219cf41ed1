//! From what was seen of tasks on a disk to models of both.
//!
//! The disk: its rate is that of reads that followed one another without a gap; what they took longer elsewhere is the
//! cost of getting there. The tasks: what each did, in as many requests, with as much time between. Work that nobody
//! saw is not there: a task that runs on has as much to do as it did while it was watched.

use super::super::sample::Class;
use super::{DiskModel, LastCall, Spec};

/// Fewer sequential bytes than this say nothing about the rate.
const LEAST_BYTES: u64 = 8 << 20;
/// Fewer requests than this say nothing about the cost of getting there.
const LEAST_REQUESTS: u64 = 16;
/// Sequential rate of a disk about which nothing is known, bytes per second: with an arm, between the outer and the
/// inner edge, and without.
const TYPICAL: [f64; 2] = [92e6, 400e6];
/// A disk with an arm moves this part less at its end than at its beginning, where its tracks are longest.
const INNER_LOSS: f64 = 0.5;
/// Within the files of one task an arm moves less far, and waits as long for the rotation.
const NEAR_PART: f64 = 0.55;
/// Fewer jumps than this part of the requests are the file system's, not the task's.
const STREAM_JUMPS: f64 = 0.5;

/// What was seen of a task on one disk, in all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Bytes that it read.
    pub bytes_read: u64,
    /// Bytes that it wrote.
    pub bytes_written: u64,
    /// Its requests that were reads.
    pub reads: u64,
    /// Its other requests.
    pub writes: u64,
    /// Its requests that continued its own last one.
    pub continued: u64,
    /// Its reads that continued the disk's last request.
    pub sequential_reads: u64,
    /// Bytes of them.
    pub sequential_bytes: u64,
    /// How long the disk was at them, ns.
    pub sequential_ns: u64,
    /// Time from the completion before to that of each of them, ns: a disk reads on between two requests.
    pub sequential_apart_ns: u64,
    /// How long the disk was at all its reads, ns.
    pub read_ns: u64,
    /// How long the disk was at its writes, ns.
    pub write_ns: u64,
    /// Time in which it did not wait for the disk, ns.
    pub think_ns: u64,
    /// The part of it before its first request, ns.
    pub before_ns: u64,
    /// The part of it after its last request, ns.
    pub after_ns: u64,
    /// Time of processors that it used, ns.
    pub processor_ns: u64,
    /// The same of what it did while nobody else used the disk.
    pub alone: SeenAlone,
    /// When it began, ns from the beginning.
    pub start_ns: u64,
    /// How long it took, or was seen, ns.
    pub took_ns: u64,
    /// Where on the disk its data is on average: 0 its beginning, 1 its end; `None`: nobody knows.
    pub place: Option<f64>,
    /// The rate that was measured before where its data is, bytes per second.
    pub measured_bytes_per_s: Option<f64>,
    /// Whether it wrote after it had read, in the call that ended it.
    pub writes_last: bool,
    /// Whether a policy can know how much it has yet to read.
    pub is_size_known: bool,
    /// Whether it may be frozen.
    pub is_batch: bool,
}

/// What a task did while nobody else used the disk; reads only.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeenAlone {
    /// Bytes.
    pub bytes: u64,
    /// Requests.
    pub requests: u64,
    /// Those that continued its last one.
    pub continued: u64,
    /// How long the disk was at them, ns.
    pub device_ns: u64,
}

impl Seen {
    fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// The part of its requests that did not continue its own last one: 0 to 1.
    #[must_use]
    pub fn jumps(&self) -> f64 {
        if self.requests() == 0 {
            return 0.0;
        }
        1.0 - self.continued.min(self.requests()) as f64 / self.requests() as f64
    }
}

/// A model of the disk by what tasks did on it. What was measured before is taken where less was seen.
#[must_use]
pub fn disk(tasks: &[Seen], measured: Option<&DiskModel>, has_arm: bool) -> DiskModel {
    let sum = |of: fn(&Seen) -> u64| tasks.iter().map(of).sum::<u64>();
    let bytes_per_s = rate(tasks, measured, has_arm);
    let known = placed(tasks, bytes_per_s, measured.is_some() || !has_arm);
    let move_ns = |number: usize, bytes: u64| bytes as f64 * 1e9 / known[number];
    let elsewhere = sum(|task| task.reads.saturating_sub(task.sequential_reads));
    let elsewhere_ns = sum(|task| task.read_ns.saturating_sub(task.sequential_ns)) as f64
        - (0..)
            .zip(tasks)
            .map(|(number, task)| {
                let bytes = task.bytes_read.saturating_sub(task.sequential_bytes);
                move_ns(number, bytes)
            })
            .sum::<f64>();
    let far_seen =
        (elsewhere >= LEAST_REQUESTS).then(|| (elsewhere_ns / elsewhere as f64).max(0.0) as u64);
    let far_ns = far_seen.or(measured.map(|disk| disk.far_ns)).unwrap_or(if has_arm {
        12_000_000
    } else {
        0
    });
    let jumps = sum(|task| task.alone.requests.saturating_sub(task.alone.continued));
    let jumps_ns = sum(|task| task.alone.device_ns) as f64
        - (0..).zip(tasks).map(|(number, task)| move_ns(number, task.alone.bytes)).sum::<f64>();
    let near_seen = (jumps >= LEAST_REQUESTS).then(|| (jumps_ns / jumps as f64).max(0.0) as u64);
    // What was measured with nobody else on the disk is better than what was seen between others, whose writes a disk
    // may still be at.
    let near_ns = measured
        .map(|disk| disk.near_ns)
        .or(near_seen.map(|ns| ns.min(far_ns)))
        .unwrap_or((far_ns as f64 * if has_arm { NEAR_PART } else { 1.0 }) as u64);
    DiskModel {
        bytes_per_s,
        near_ns,
        far_ns,
        request_ns: 0,
        slots: measured.map_or(1, |disk| disk.slots),
    }
}

fn rate(tasks: &[Seen], measured: Option<&DiskModel>, has_arm: bool) -> f64 {
    if let Some(disk) = measured {
        return disk.bytes_per_s;
    }
    // Each as it would be halfway between the beginning and the end.
    let halfway = |task: &Seen| {
        let place = task.place.filter(|_| has_arm).unwrap_or(0.5);
        let part = (1.0 - INNER_LOSS * place) / (1.0 - INNER_LOSS / 2.0);
        told_rate(task).map(|rate| rate / part)
    };
    let fastest = tasks.iter().filter_map(halfway).reduce(f64::max);
    let typical = TYPICAL[usize::from(!has_arm)];
    // Without an arm what comes between two reads of a task costs nothing, as long as nothing else is known.
    let any = || (!has_arm).then(|| device_rate(tasks)).flatten();
    fastest.or_else(any).unwrap_or(typical)
}

/// What all reads moved while the disk was at them, bytes per second; `None` of too few.
fn device_rate(tasks: &[Seen]) -> Option<f64> {
    let bytes: u64 = tasks.iter().map(|task| task.bytes_read).sum();
    let device_ns: u64 = tasks.iter().map(|task| task.read_ns).sum();
    (bytes >= LEAST_BYTES && device_ns > 0).then(|| bytes as f64 * 1e9 / device_ns as f64)
}

/// The rate where the data of each task is, bytes per second. Where nobody measured it, a disk with an arm moves the
/// less the further from its beginning, and `bytes_per_s` halfway; `is_even`: it moves as much everywhere.
#[must_use]
pub fn placed(tasks: &[Seen], bytes_per_s: f64, is_even: bool) -> Vec<f64> {
    let of_place = |task: &Seen| match task.place {
        Some(place) if !is_even => {
            bytes_per_s * (1.0 - INNER_LOSS * place) / (1.0 - INNER_LOSS / 2.0)
        }
        _ => bytes_per_s,
    };
    let tasks = tasks.iter();
    tasks.map(|task| rate_of(task).unwrap_or_else(|| of_place(task))).collect()
}

/// The rate where a task's data is: as measured, or as it was seen to read there, bytes per second.
fn rate_of(task: &Seen) -> Option<f64> {
    let is_stream = task.jumps() < STREAM_JUMPS && task.think_ns < task.took_ns / 4;
    task.measured_bytes_per_s.or_else(|| told_rate(task).filter(|_| is_stream))
}

/// What a task's sequential reads moved, gaps included, bytes per second; `None` of too few.
#[must_use]
pub fn sequential_rate(task: &Seen) -> Option<f64> {
    let is_enough = task.sequential_bytes >= LEAST_BYTES && task.sequential_apart_ns > 0;
    is_enough.then(|| task.sequential_bytes as f64 * 1e9 / task.sequential_apart_ns as f64)
}

/// The same, as far as it tells what the disk moves: not of a task that thinks for most of the time from one to the
/// next.
fn told_rate(task: &Seen) -> Option<f64> {
    let apart_ns = task.sequential_apart_ns / task.sequential_reads.max(1);
    let thinks = 2 * task.think_ns / task.requests().max(1) > apart_ns;
    sequential_rate(task).filter(|_| !thinks)
}

/// A task that does what was seen of this one; `from_ns` is when the first of all began, `bytes_per_s` the rate where
/// its data is.
#[must_use]
pub fn task(seen: &Seen, from_ns: u64, bytes_per_s: Option<f64>) -> Spec {
    let is_mixed = !seen.writes_last && seen.writes > 0;
    let (bytes, requests) = if is_mixed {
        (seen.bytes_read + seen.bytes_written, seen.requests())
    } else {
        (seen.bytes_read, seen.reads)
    };
    let jumps = seen.jumps();
    let last_call = (seen.writes_last && seen.bytes_written > 0).then(|| LastCall {
        bytes: seen.bytes_written,
        request_bytes: (seen.bytes_written / seen.writes.max(1)).max(1),
        jumps: if seen.reads > 0 { 0.0 } else { jumps },
    });
    let after_ns = seen.after_ns.min(seen.think_ns);
    let rest_ns = seen.think_ns - after_ns;
    // What is thought before a last call alone is before its first request.
    let before_ns = if requests == 0 { rest_ns } else { seen.before_ns.min(rest_ns) };
    let each_ns = (rest_ns - before_ns) / requests.max(1);
    let is_stream = jumps < STREAM_JUMPS;
    Spec {
        class: if seen.is_batch { Class::Batch } else { Class::Protected },
        bytes_per_s,
        start_ns: seen.start_ns.saturating_sub(from_ns),
        bytes: bytes + last_call.map_or(0, |last| last.bytes),
        request_bytes: bytes.checked_div(requests).unwrap_or(1).max(1),
        jumps,
        before_ns,
        after_ns,
        processors: seen.processor_ns as f64 / seen.think_ns.max(1) as f64,
        pause_ns: if is_stream { 0 } else { each_ns },
        period_ns: is_stream.then_some(each_ns),
        last_call,
        is_size_known: seen.is_size_known,
        ..Spec::stream(0)
    }
}

/// The same task with a larger read-ahead, where it reads a stream.
#[must_use]
pub fn read_ahead(spec: &Spec, bytes: u64) -> Spec {
    if spec.jumps >= STREAM_JUMPS || spec.request_bytes >= bytes {
        return *spec;
    }
    let times = bytes as f64 / spec.request_bytes.max(1) as f64;
    Spec {
        request_bytes: bytes,
        period_ns: spec.period_ns.map(|ns| (ns as f64 * times) as u64),
        ..*spec
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Nothing, alone_ns, run};
    use super::*;

    const ARM: DiskModel = DiskModel {
        bytes_per_s: 105e6,
        near_ns: 6_000_000,
        far_ns: 12_000_000,
        request_ns: 0,
        slots: 1,
    };

    fn stream(bytes: u64) -> Seen {
        let requests = bytes >> 17;
        Seen {
            bytes_read: bytes,
            reads: requests,
            continued: requests - 1,
            // Each from another's place.
            read_ns: bytes * 1_000 / 105 + requests * 12_000_000,
            is_size_known: true,
            is_batch: true,
            ..Seen::default()
        }
    }

    #[test]
    fn what_is_not_the_rate_is_the_way() {
        let seen = [stream(64 << 20), stream(64 << 20)];
        let fitted = disk(&seen, Some(&ARM), true);
        assert!(fitted.far_ns.abs_diff(12_000_000) < 20_000, "{fitted:?}");
        let unknown = disk(&seen, None, true);
        assert!(unknown.far_ns.abs_diff(12_000_000) < 500_000, "{unknown:?}");
        assert!(unknown.near_ns < unknown.far_ns);
    }

    #[test]
    fn without_an_arm_all_reads_tell_the_rate_and_a_switch_costs_nothing() {
        let seen = Seen { read_ns: (64 << 20) * 1_000 / 330, ..stream(64 << 20) };
        let fitted = disk(&[seen, seen], None, false);
        assert!((fitted.bytes_per_s / 330e6 - 1.0).abs() < 0.001, "{fitted:?}");
        assert!(fitted.far_ns < 1_000, "{fitted:?}");
    }

    #[test]
    fn a_stream_alone_takes_its_bytes_and_a_thinking_one_its_thoughts() {
        let think = Seen { think_ns: 512 * 2_000_000, ..stream(64 << 20) };
        let specs = [task(&stream(64 << 20), 0, None), task(&think, 0, None)];
        let alone = alone_ns(&ARM, &specs);
        assert!(alone[0].abs_diff((64 << 20) * 1_000 / 105) < 20_000_000);
        assert!(alone[1].abs_diff(1_024_000_000) < 20_000_000, "{alone:?}");
    }

    #[test]
    fn what_is_thought_before_and_after_is_a_part_of_the_time() {
        let writer = Seen {
            bytes_written: 64 << 20,
            writes: 64,
            think_ns: 150_000_000,
            after_ns: 50_000_000,
            writes_last: true,
            is_batch: true,
            ..Seen::default()
        };
        let spec = task(&writer, 0, None);
        assert_eq!((spec.before_ns, spec.after_ns), (100_000_000, 50_000_000));
        let alone = alone_ns(&ARM, &[spec])[0];
        let moved_ns = (64 << 20) * 1_000 / 105;
        assert!(alone.abs_diff(moved_ns + 150_000_000) < 20_000_000, "{alone}");
    }

    #[test]
    fn a_task_that_thinks_all_the_time_does_not_tell_the_rate() {
        let reads = Seen {
            sequential_reads: 256,
            sequential_bytes: 32 << 20,
            sequential_apart_ns: 256 * 2_300_000,
            ..stream(32 << 20)
        };
        assert!(told_rate(&reads).is_some());
        let thinks = Seen { think_ns: 256 * 2_200_000, ..reads };
        assert_eq!(told_rate(&thinks), None);
        assert!(sequential_rate(&thinks).is_some(), "alone it is what it is");
    }

    #[test]
    fn an_arm_moves_less_at_the_end_of_the_disk() {
        let at = |place| Seen { place: Some(place), ..Seen::default() };
        let tasks = [at(0.0), at(0.5), at(1.0)];
        let rates = placed(&tasks, 90e6, false);
        assert!((rates[0] - 120e6).abs() < 1.0 && (rates[1] - 90e6).abs() < 1.0);
        assert!((rates[2] - 60e6).abs() < 1.0);
        assert_eq!(placed(&tasks, 90e6, true), [90e6; 3]);
    }

    #[test]
    fn larger_requests_lose_less() {
        let specs = [task(&stream(64 << 20), 0, None); 4];
        let ahead = specs.map(|spec| read_ahead(&spec, 2 << 20));
        let all_done = |specs: &[Spec]| run(&ARM, specs, &mut Nothing, u64::MAX).makespan_ns();
        assert!(all_done(&ahead) * 4 < all_done(&specs));
    }

    #[test]
    fn nothing_seen_is_no_work() {
        let spec = task(&Seen::default(), 0, None);
        assert_eq!(spec.bytes, 0);
        assert!(disk(&[], None, true).far_ns > 0);
    }
}
