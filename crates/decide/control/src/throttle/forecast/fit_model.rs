//! Fits models of a disk and its tasks to observations.
//!
//! The rate of the disk is that of reads that followed one another without a gap. The extra time of other reads is the
//! cost of moving there. Each task is modelled with as many requests and as much think time as observed. Unobserved
//! work is not modelled: a task that was still running has as much work as it did while it was watched.

use super::super::policy_input::TaskClass;
use super::{DiskModel, FinalSync, TaskWork};

/// Smallest number of sequential bytes from which a rate is derived.
const MIN_SEQUENTIAL_BYTES: u64 = 8 << 20;
/// Smallest number of requests from which the cost of moving is derived.
const MIN_REQUESTS: u64 = 16;
/// Assumed sequential rate of an unknown disk, bytes per second: with an arm, between the outer and the inner edge, and
/// without an arm.
const DEFAULT_BYTES_PER_S: [f64; 2] = [92e6, 400e6];
/// Part of its rate that a disk with an arm loses from its first track to its last, shortest one.
const INNER_RATE_LOSS: f64 = 0.5;
/// Cost of moving within the files of one task, as a part of the cost of moving between tasks. The arm moves less far,
/// but waits as long for the rotation.
const NEAR_COST_FRACTION: f64 = 0.55;
/// Part of jumping requests below which a task is a stream: the file system causes these jumps.
const MAX_STREAM_JUMPS: f64 = 0.5;

/// Sums of a task's activity on one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskActivity {
    /// Bytes that the task read.
    pub bytes_read: u64,
    /// Bytes that the task wrote.
    pub bytes_written: u64,
    /// Number of its read requests.
    pub reads: u64,
    /// Number of its other requests.
    pub writes: u64,
    /// Number of its requests that continued its own last one.
    pub continued: u64,
    /// Number of its reads that continued the disk's last request.
    pub sequential_reads: u64,
    /// Bytes of those sequential reads.
    pub sequential_bytes: u64,
    /// Device time of those sequential reads, ns.
    pub sequential_ns: u64,
    /// Time from the completion before each sequential read to its own, ns. It includes gaps, in which a disk reads on.
    pub sequential_apart_ns: u64,
    /// Device time of all its reads, ns.
    pub read_ns: u64,
    /// Device time of its writes, ns.
    pub write_ns: u64,
    /// Time in which it did not wait for the disk, ns.
    pub think_ns: u64,
    /// Part of that think time before its first request, ns.
    pub before_ns: u64,
    /// Part of that think time after its last request, ns.
    pub after_ns: u64,
    /// Processor time that it used, ns.
    pub processor_ns: u64,
    /// Activity while no other task used the disk.
    pub alone: SoloActivity,
    /// Start of the task, ns after its disk began to be watched.
    pub start_ns: u64,
    /// Time that the task took, or for which it was watched, ns.
    pub took_ns: u64,
    /// Mean position of its data on the disk: 0 the beginning, 1 the end; `None`: unknown.
    pub place: Option<f64>,
    /// Earlier measured rate where its data is, bytes per second.
    pub measured_bytes_per_s: Option<f64>,
    /// Whether it wrote after all its reads, in the call that ended it.
    pub writes_last: bool,
    /// Whether a policy can know how much it has yet to read.
    pub is_size_known: bool,
    /// Whether a policy may freeze it.
    pub is_batch: bool,
}

/// Reads of a task while no other task used the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SoloActivity {
    /// Bytes of those reads.
    pub bytes: u64,
    /// Number of those reads.
    pub requests: u64,
    /// Number of those reads that continued its last one.
    pub continued: u64,
    /// Device time of those reads, ns.
    pub device_ns: u64,
}

impl TaskActivity {
    fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// Part of its requests that did not continue its own last one: 0 to 1.
    #[must_use]
    pub fn jumps(&self) -> f64 {
        if self.requests() == 0 {
            return 0.0;
        }
        1.0 - self.continued.min(self.requests()) as f64 / self.requests() as f64
    }
}

/// Fits a model of the disk to the tasks' activity. An earlier measurement fills in where too little was observed.
#[must_use]
pub fn disk(tasks: &[TaskActivity], measured: Option<&DiskModel>, has_arm: bool) -> DiskModel {
    let sum = |of: fn(&TaskActivity) -> u64| tasks.iter().map(of).sum::<u64>();
    let bytes_per_s = disk_rate(tasks, measured, has_arm);
    let known = rates_of_tasks(tasks, bytes_per_s, measured.is_some() || !has_arm);
    let transfer_ns = |bytes: fn(&TaskActivity) -> u64| -> f64 {
        known.iter().zip(tasks).map(|(rate, task)| bytes(task) as f64 * 1e9 / rate).sum()
    };
    let elsewhere = sum(|task| task.reads.saturating_sub(task.sequential_reads));
    let elsewhere_ns = sum(|task| task.read_ns.saturating_sub(task.sequential_ns)) as f64
        - transfer_ns(|task| task.bytes_read.saturating_sub(task.sequential_bytes));
    let far_seen =
        (elsewhere >= MIN_REQUESTS).then(|| (elsewhere_ns / elsewhere as f64).max(0.0) as u64);
    let far_ns = far_seen.or(measured.map(|disk| disk.far_ns)).unwrap_or(if has_arm {
        12_000_000
    } else {
        0
    });
    let jumps = sum(|task| task.alone.requests.saturating_sub(task.alone.continued));
    let jumps_ns = sum(|task| task.alone.device_ns) as f64 - transfer_ns(|task| task.alone.bytes);
    let near_seen = (jumps >= MIN_REQUESTS).then(|| (jumps_ns / jumps as f64).max(0.0) as u64);
    // A measurement on an idle disk is better than observation between other tasks, whose writes the disk may still do.
    let near_ns = measured
        .map(|disk| disk.near_ns)
        .or(near_seen.map(|ns| ns.min(far_ns)))
        .unwrap_or((far_ns as f64 * if has_arm { NEAR_COST_FRACTION } else { 1.0 }) as u64);
    DiskModel {
        bytes_per_s,
        near_ns,
        far_ns,
        request_ns: 0,
        slots: measured.map_or(1, |disk| disk.slots),
    }
}

fn disk_rate(tasks: &[TaskActivity], measured: Option<&DiskModel>, has_arm: bool) -> f64 {
    if let Some(disk) = measured {
        return disk.bytes_per_s;
    }
    // Each rate as it would be halfway between the beginning and the end.
    let halfway = |task: &TaskActivity| {
        let place = task.place.filter(|_| has_arm).unwrap_or(0.5);
        let part = (1.0 - INNER_RATE_LOSS * place) / (1.0 - INNER_RATE_LOSS / 2.0);
        reliable_rate(task).map(|rate| rate / part)
    };
    let fastest = tasks.iter().filter_map(halfway).reduce(f64::max);
    let typical = DEFAULT_BYTES_PER_S[usize::from(!has_arm)];
    // Without an arm, requests between two reads of a task are assumed to cost nothing.
    let any = || (!has_arm).then(|| device_rate(tasks)).flatten();
    fastest.or_else(any).unwrap_or(typical)
}

/// Rate of all reads in device time, bytes per second; `None` if there are too few.
fn device_rate(tasks: &[TaskActivity]) -> Option<f64> {
    let bytes: u64 = tasks.iter().map(|task| task.bytes_read).sum();
    let device_ns: u64 = tasks.iter().map(|task| task.read_ns).sum();
    (bytes >= MIN_SEQUENTIAL_BYTES && device_ns > 0).then(|| bytes as f64 * 1e9 / device_ns as f64)
}

/// Rate where the data of each task is, bytes per second. Unmeasured positions on a disk with an arm get slower towards
/// its end; `bytes_per_s` is the rate halfway. `is_even`: the rate is the same everywhere.
#[must_use]
pub fn rates_of_tasks(tasks: &[TaskActivity], bytes_per_s: f64, is_even: bool) -> Vec<f64> {
    let of_place = |task: &TaskActivity| match task.place {
        Some(place) if !is_even => {
            bytes_per_s * (1.0 - INNER_RATE_LOSS * place) / (1.0 - INNER_RATE_LOSS / 2.0)
        }
        _ => bytes_per_s,
    };
    tasks.iter().map(|task| known_rate(task).unwrap_or_else(|| of_place(task))).collect()
}

/// Rate where a task's data is, as measured or as it read there, bytes per second.
fn known_rate(task: &TaskActivity) -> Option<f64> {
    let is_stream = task.jumps() < MAX_STREAM_JUMPS && task.think_ns < task.took_ns / 4;
    task.measured_bytes_per_s.or_else(|| reliable_rate(task).filter(|_| is_stream))
}

/// Rate of a task's sequential reads, gaps included, bytes per second; `None` if there are too few.
#[must_use]
pub fn sequential_rate(task: &TaskActivity) -> Option<f64> {
    let is_enough = task.sequential_bytes >= MIN_SEQUENTIAL_BYTES && task.sequential_apart_ns > 0;
    is_enough.then(|| task.sequential_bytes as f64 * 1e9 / task.sequential_apart_ns as f64)
}

/// Like `sequential_rate`, but `None` for a task that thinks for most of the gaps: it does not show the disk's rate.
fn reliable_rate(task: &TaskActivity) -> Option<f64> {
    let apart_ns = task.sequential_apart_ns / task.sequential_reads.max(1);
    let thinks = 2 * task.think_ns / task.requests().max(1) > apart_ns;
    sequential_rate(task).filter(|_| !thinks)
}

/// Fits a task to its activity. `from_ns` is the start of the first task, `bytes_per_s` the rate where its data is.
#[must_use]
pub fn task(seen: &TaskActivity, from_ns: u64, bytes_per_s: Option<f64>) -> TaskWork {
    let is_mixed = !seen.writes_last && seen.writes > 0;
    let (bytes, requests) = if is_mixed {
        (seen.bytes_read + seen.bytes_written, seen.requests())
    } else {
        (seen.bytes_read, seen.reads)
    };
    let jumps = seen.jumps();
    let last_call = (seen.writes_last && seen.bytes_written > 0).then(|| FinalSync {
        bytes: seen.bytes_written,
        request_bytes: (seen.bytes_written / seen.writes.max(1)).max(1),
        jumps: if seen.reads > 0 { 0.0 } else { jumps },
    });
    let after_ns = seen.after_ns.min(seen.think_ns);
    let rest_ns = seen.think_ns - after_ns;
    // A task with only a last call thinks before its first request.
    let before_ns = if requests == 0 { rest_ns } else { seen.before_ns.min(rest_ns) };
    let each_ns = (rest_ns - before_ns) / requests.max(1);
    let is_stream = jumps < MAX_STREAM_JUMPS;
    TaskWork {
        class: if seen.is_batch { TaskClass::Batch } else { TaskClass::Protected },
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
        ..TaskWork::stream(0)
    }
}

/// Enlarges the read-ahead of a task that reads a stream.
#[must_use]
pub fn with_read_ahead(spec: &TaskWork, bytes: u64) -> TaskWork {
    if spec.jumps >= MAX_STREAM_JUMPS || spec.request_bytes >= bytes {
        return *spec;
    }
    let times = bytes as f64 / spec.request_bytes.max(1) as f64;
    TaskWork {
        request_bytes: bytes,
        period_ns: spec.period_ns.map(|ns| (ns as f64 * times) as u64),
        ..*spec
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NeverFreeze, alone_ns, run};
    use super::*;

    const ARM: DiskModel = DiskModel {
        bytes_per_s: 105e6,
        near_ns: 6_000_000,
        far_ns: 12_000_000,
        request_ns: 0,
        slots: 1,
    };

    fn stream(bytes: u64) -> TaskActivity {
        let requests = bytes >> 17;
        TaskActivity {
            bytes_read: bytes,
            reads: requests,
            continued: requests - 1,
            // Each from another's place.
            read_ns: bytes * 1_000 / 105 + requests * 12_000_000,
            is_size_known: true,
            is_batch: true,
            ..TaskActivity::default()
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
        let seen = TaskActivity { read_ns: (64 << 20) * 1_000 / 330, ..stream(64 << 20) };
        let fitted = disk(&[seen, seen], None, false);
        assert!((fitted.bytes_per_s / 330e6 - 1.0).abs() < 0.001, "{fitted:?}");
        assert!(fitted.far_ns < 1_000, "{fitted:?}");
    }

    #[test]
    fn a_stream_alone_takes_its_bytes_and_a_thinking_one_its_thoughts() {
        let think = TaskActivity { think_ns: 512 * 2_000_000, ..stream(64 << 20) };
        let specs = [task(&stream(64 << 20), 0, None), task(&think, 0, None)];
        let alone = alone_ns(&ARM, &specs);
        assert!(alone[0].abs_diff((64 << 20) * 1_000 / 105) < 20_000_000);
        assert!(alone[1].abs_diff(1_024_000_000) < 20_000_000, "{alone:?}");
    }

    #[test]
    fn what_is_thought_before_and_after_is_a_part_of_the_time() {
        let writer = TaskActivity {
            bytes_written: 64 << 20,
            writes: 64,
            think_ns: 150_000_000,
            after_ns: 50_000_000,
            writes_last: true,
            is_batch: true,
            ..TaskActivity::default()
        };
        let spec = task(&writer, 0, None);
        assert_eq!((spec.before_ns, spec.after_ns), (100_000_000, 50_000_000));
        let alone = alone_ns(&ARM, &[spec])[0];
        let moved_ns = (64 << 20) * 1_000 / 105;
        assert!(alone.abs_diff(moved_ns + 150_000_000) < 20_000_000, "{alone}");
    }

    #[test]
    fn a_task_that_thinks_all_the_time_does_not_tell_the_rate() {
        let reads = TaskActivity {
            sequential_reads: 256,
            sequential_bytes: 32 << 20,
            sequential_apart_ns: 256 * 2_300_000,
            ..stream(32 << 20)
        };
        assert!(reliable_rate(&reads).is_some());
        let thinks = TaskActivity { think_ns: 256 * 2_200_000, ..reads };
        assert_eq!(reliable_rate(&thinks), None);
        assert!(sequential_rate(&thinks).is_some(), "alone it is what it is");
    }

    #[test]
    fn an_arm_moves_less_at_the_end_of_the_disk() {
        let at = |place| TaskActivity { place: Some(place), ..TaskActivity::default() };
        let tasks = [at(0.0), at(0.5), at(1.0)];
        let rates = rates_of_tasks(&tasks, 90e6, false);
        assert!((rates[0] - 120e6).abs() < 1.0 && (rates[1] - 90e6).abs() < 1.0);
        assert!((rates[2] - 60e6).abs() < 1.0);
        assert_eq!(rates_of_tasks(&tasks, 90e6, true), [90e6; 3]);
    }

    #[test]
    fn larger_requests_lose_less() {
        let specs = [task(&stream(64 << 20), 0, None); 4];
        let ahead = specs.map(|spec| with_read_ahead(&spec, 2 << 20));
        let all_done =
            |specs: &[TaskWork]| run(&ARM, specs, &mut NeverFreeze, u64::MAX).makespan_ns();
        assert!(all_done(&ahead) * 4 < all_done(&specs));
    }

    #[test]
    fn nothing_seen_is_no_work() {
        let spec = task(&TaskActivity::default(), 0, None);
        assert_eq!(spec.bytes, 0);
        assert!(disk(&[], None, true).far_ns > 0);
    }
}
