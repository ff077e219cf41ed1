//! A task of a forecast at work.

use std::collections::VecDeque;

use super::super::policy_input::{FreezeAction, TaskClass, TaskId, TaskSample};
use super::{FinalSync, TaskWork};

/// A millisecond, ns. Virtual time begins here, since 0 means "never".
pub(super) const MS: u64 = 1_000_000;
/// Number of bits of a position that are the offset within a task's files. The others are the task's number.
const FILE_BITS: u32 = 48;

/// A request that the disk works on.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestInService {
    pub(super) task: usize,
    pub(super) slot: usize,
    pub(super) request: SimulatedRequest,
    pub(super) issued_ns: u64,
    pub(super) ends_ns: u64,
    pub(super) is_sequential: bool,
}

/// A request of a simulated task.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedRequest {
    pub(super) position: u64,
    pub(super) bytes: u64,
    /// Whether it is written back: the disk collects and sorts requests of writeback.
    pub(super) is_written_back: bool,
    submitted_ns: u64,
}

/// A task at work.
#[derive(Clone, Debug)]
pub(super) struct SimulatedTask {
    pub(super) spec: TaskWork,
    pub(super) sample: TaskSample,
    pub(super) queue: VecDeque<SimulatedRequest>,
    submitted_bytes: u64,
    submitted: u64,
    position: u64,
    /// Whether it is in the call that ends it, which no freeze interrupts.
    is_in_last_call: bool,
    /// Think time left before its next action, at full speed, ns.
    thinks_ns: u64,
    frozen_since_ns: u64,
    pub(super) finish_ns: u64,
    pub(super) longest_frozen_ns: u64,
    pub(super) latencies_ns: Vec<u64>,
}

impl SimulatedTask {
    pub(super) fn new(id: TaskId, spec: TaskWork) -> Self {
        let TaskWork { class, weight, p99_ns, .. } = spec;
        Self {
            spec,
            sample: TaskSample { class, weight, p99_ns, ..TaskSample::new(id) },
            queue: VecDeque::new(),
            submitted_bytes: 0,
            submitted: 0,
            position: 0,
            is_in_last_call: false,
            thinks_ns: spec.before_ns,
            frozen_since_ns: 0,
            // A task without work is done.
            finish_ns: if spec.bytes == 0 { spec.start_ns + MS } else { 0 },
            longest_frozen_ns: 0,
            latencies_ns: Vec::new(),
        }
    }

    pub(super) fn is_batch(&self) -> bool {
        self.spec.class == TaskClass::Batch
    }

    pub(super) fn will_end(&self) -> bool {
        self.spec.bytes < u64::MAX && self.finish_ns == 0
    }

    pub(super) fn is_there(&self, now_ns: u64) -> bool {
        self.finish_ns == 0 && now_ns >= self.spec.start_ns + MS
    }

    pub(super) fn sample(&self) -> TaskSample {
        let left_bytes = self.first_bytes().saturating_sub(self.sample.bytes);
        TaskSample { remaining_bytes: self.spec.is_size_known.then_some(left_bytes), ..self.sample }
    }

    /// Whether a position is in the files of this task.
    pub(super) fn owns(&self, position: u64) -> bool {
        position >> FILE_BITS == u64::from(self.sample.task.0)
    }

    /// Bytes before those of its last call.
    fn first_bytes(&self) -> u64 {
        let last_bytes = self.spec.last_call.map_or(0, |last| last.bytes);
        self.spec.bytes.saturating_sub(last_bytes)
    }

    /// Work that is to be submitted next: `bytes` is what is left of it.
    fn next_work(&self) -> FinalSync {
        let first_bytes = self.first_bytes();
        match self.spec.last_call {
            Some(last) if self.submitted_bytes >= first_bytes => {
                FinalSync { bytes: self.spec.bytes - self.submitted_bytes, ..last }
            }
            _ => FinalSync {
                bytes: first_bytes - self.submitted_bytes,
                request_bytes: self.spec.request_bytes,
                jumps: self.spec.jumps,
            },
        }
    }

    /// Submits all requests that it can.
    pub(super) fn submit(&mut self, now_ns: u64) {
        while self.is_there(now_ns) && self.can_submit() && self.thinks_ns == 0 {
            self.is_in_last_call =
                self.spec.last_call.is_some() && self.submitted_bytes >= self.first_bytes();
            let work = self.next_work();
            let bytes = work.request_bytes.max(1).min(work.bytes);
            // A jump must not begin at the end of another request.
            let jumps = |requests: u64| (requests as f64 * work.jumps).floor();
            let is_jump = jumps(self.submitted) < jumps(self.submitted + 1);
            self.position += u64::from(is_jump);
            let file = u64::from(self.sample.task.0) << FILE_BITS;
            let offset = self.position;
            self.position += bytes;
            self.queue.push_back(SimulatedRequest {
                position: file + offset,
                bytes,
                is_written_back: self.is_in_last_call,
                submitted_ns: now_ns,
            });
            self.submitted_bytes += bytes;
            self.submitted += 1;
            self.sample.outstanding += 1;
            self.sample.last_submit_ns = now_ns;
            if let Some(period_ns) = self.spec.period_ns
                && !self.is_in_last_call
            {
                self.thinks_ns = period_ns;
            }
        }
    }

    fn can_submit(&self) -> bool {
        (!self.sample.frozen || self.is_in_last_call)
            && self.sample.outstanding < self.spec.depth
            && self.submitted_bytes < self.spec.bytes
    }

    /// Time of its start, ns, if that is in the future.
    pub(super) fn begins_ns(&self, now_ns: u64) -> Option<u64> {
        let begins_ns = self.spec.start_ns + MS;
        (self.finish_ns == 0 && begins_ns > now_ns).then_some(begins_ns)
    }

    /// Number of processors that it would keep busy now.
    pub(super) fn processors(&self, now_ns: u64) -> f64 {
        if self.is_thinking(now_ns) { self.spec.processors } else { 0.0 }
    }

    fn is_thinking(&self, now_ns: u64) -> bool {
        self.is_there(now_ns) && self.thinks_ns > 0 && !self.sample.frozen
    }

    /// Speed of thinking with this `share` of each processor that it asks for: 1 is undisturbed.
    fn pace(&self, share: f64) -> f64 {
        let part = self.spec.processors.clamp(0.0, 1.0);
        1.0 / (part / share + 1.0 - part)
    }

    /// Time at which it will have thought, ns, if nothing changes before.
    pub(super) fn thought_ns(&self, now_ns: u64, share: f64) -> Option<u64> {
        let left_ns = (self.thinks_ns as f64 / self.pace(share)).ceil() as u64;
        self.is_thinking(now_ns).then_some(now_ns + left_ns)
    }

    /// Lets it think for `elapsed_ns` from `now_ns`.
    pub(super) fn think(&mut self, now_ns: u64, elapsed_ns: u64, share: f64) {
        if self.is_thinking(now_ns) {
            let done_ns = (elapsed_ns as f64 * self.pace(share)).ceil() as u64;
            self.thinks_ns = self.thinks_ns.saturating_sub(done_ns);
            self.end_if_done(now_ns + elapsed_ns);
        }
    }

    /// Ends it once all is moved and thought. A frozen task ends when it is thawed.
    fn end_if_done(&mut self, now_ns: u64) {
        let is_done = self.sample.bytes == self.spec.bytes && self.thinks_ns == 0;
        if is_done && !self.sample.frozen {
            self.finish_ns = now_ns;
        }
    }

    pub(super) fn complete(&mut self, served: &RequestInService, device_ns: u64, now_ns: u64) {
        let request = served.request;
        let sample = &mut self.sample;
        sample.bytes += request.bytes;
        sample.requests += 1;
        sample.sequential += u64::from(served.is_sequential);
        sample.queue_ns += served.issued_ns - request.submitted_ns;
        sample.device_ns += device_ns;
        sample.outstanding -= 1;
        self.latencies_ns.push(now_ns - request.submitted_ns);
        let mut pause_ns = self.spec.pause_ns;
        if let Some((requests, compute_ns)) = self.spec.phase
            && sample.requests.is_multiple_of(requests)
        {
            pause_ns += compute_ns;
        }
        if self.is_in_last_call {
            self.thinks_ns = 0;
        } else {
            self.thinks_ns = self.thinks_ns.max(pause_ns);
        }
        if self.sample.bytes == self.spec.bytes {
            self.thinks_ns = self.spec.after_ns;
        }
        self.end_if_done(now_ns);
    }

    pub(super) fn order(&mut self, action: FreezeAction, now_ns: u64) {
        match action {
            FreezeAction::Freeze => {
                self.frozen_since_ns = now_ns;
                self.sample.frozen = true;
            }
            FreezeAction::Thaw => {
                self.note_frozen(now_ns);
                self.sample.frozen = false;
                self.end_if_done(now_ns);
            }
        }
    }

    /// Updates its longest freeze with the present one.
    pub(super) fn note_frozen(&mut self, now_ns: u64) {
        if self.sample.frozen {
            self.longest_frozen_ns = self.longest_frozen_ns.max(now_ns - self.frozen_since_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DiskModel, NeverFreeze, TaskWork, run_beside};

    const DISK: DiskModel =
        DiskModel { bytes_per_s: 100e6, near_ns: 0, far_ns: 0, request_ns: 0, slots: 1 };

    /// Time that each of two equal tasks takes that think 100 ms before they read.
    fn took_ns(processors_each: f64, processors: f64) -> Vec<u64> {
        let task = TaskWork {
            before_ns: 100_000_000,
            processors: processors_each,
            ..TaskWork::stream(1_000_000)
        };
        run_beside(&DISK, processors, &[task; 2], &mut NeverFreeze, u64::MAX / 2).took_ns
    }

    #[test]
    fn tasks_that_compute_share_processors_and_those_that_sleep_do_not() {
        let near = |took: Vec<u64>, ms: u64| {
            took.iter().all(|ns| ns.abs_diff(ms * 1_000_000) < 25_000_000)
        };
        assert!(near(took_ns(1.0, 1.0), 215));
        assert!(near(took_ns(0.0, 1.0), 115));
        assert!(near(took_ns(1.0, 2.0), 115));
        assert_eq!(took_ns(1.0, 2.0), took_ns(1.0, f64::INFINITY));
    }
}
