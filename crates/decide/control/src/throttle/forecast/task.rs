//! A task of a forecast at work.

use std::collections::VecDeque;

use super::super::sample::{Action, Class, TaskId, TaskSample};
use super::Spec;

/// A millisecond, ns. Simulated time begins at one: 0 is "never".
pub(super) const MS: u64 = 1_000_000;
/// Bits of a position within a task's files; the others are its number.
const FILE_BITS: u32 = 48;

/// A request: where, how much, since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) position: u64,
    pub(super) bytes: u64,
    /// Whether it is written back: the disk collects such requests and puts them in order.
    pub(super) is_written_back: bool,
    submitted_ns: u64,
}

/// A task at work.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) spec: Spec,
    pub(super) sample: TaskSample,
    pub(super) queue: VecDeque<Request>,
    submitted_bytes: u64,
    submitted: u64,
    position: u64,
    /// Whether it is in the call that ends it, which no freeze interrupts.
    is_in_last_call: bool,
    /// How long it has yet to think before it does anything else, at full speed, ns.
    thinks_ns: u64,
    frozen_since_ns: u64,
    pub(super) finish_ns: u64,
    pub(super) longest_frozen_ns: u64,
    pub(super) latencies_ns: Vec<u64>,
}

impl State {
    pub(super) fn new(number: usize, spec: Spec) -> Self {
        let mut sample = TaskSample::new(TaskId(number as u32));
        sample.class = spec.class;
        sample.weight = spec.weight;
        sample.p99_ns = spec.p99_ns;
        Self {
            spec,
            sample,
            queue: VecDeque::new(),
            submitted_bytes: 0,
            submitted: 0,
            position: 0,
            is_in_last_call: false,
            thinks_ns: spec.before_ns,
            frozen_since_ns: 0,
            // Who has nothing to do is done.
            finish_ns: if spec.bytes == 0 { spec.start_ns + MS } else { 0 },
            longest_frozen_ns: 0,
            latencies_ns: Vec::new(),
        }
    }

    pub(super) fn is_batch(&self) -> bool {
        self.spec.class == Class::Batch
    }

    pub(super) fn will_end(&self) -> bool {
        self.spec.bytes < u64::MAX && self.finish_ns == 0
    }

    pub(super) fn is_there(&self, now_ns: u64) -> bool {
        self.finish_ns == 0 && now_ns >= self.spec.start_ns + MS
    }

    pub(super) fn sample(&self) -> TaskSample {
        TaskSample {
            remaining_bytes: self
                .spec
                .is_size_known
                .then(|| self.first_bytes().saturating_sub(self.sample.bytes)),
            ..self.sample
        }
    }

    /// Whether a position is in the files of the task with this number.
    pub(super) fn is_of(position: u64, number: usize) -> bool {
        position >> FILE_BITS == number as u64
    }

    /// Bytes before those of its last call.
    fn first_bytes(&self) -> u64 {
        let last_bytes = self.spec.last_call.map_or(0, |last| last.bytes);
        self.spec.bytes.saturating_sub(last_bytes)
    }

    /// What is to be submitted next: bytes of a request, the part of the requests that jump, and bytes that are left.
    fn part(&self) -> (u64, f64, u64) {
        let first_bytes = self.first_bytes();
        match self.spec.last_call {
            Some(last) if self.submitted_bytes >= first_bytes => {
                (last.request_bytes, last.jumps, self.spec.bytes - self.submitted_bytes)
            }
            _ => (self.spec.request_bytes, self.spec.jumps, first_bytes - self.submitted_bytes),
        }
    }

    /// Submits what it can.
    pub(super) fn submit(&mut self, now_ns: u64) {
        while self.is_there(now_ns) && self.can_submit() && self.thinks_ns == 0 {
            self.is_in_last_call =
                self.spec.last_call.is_some() && self.submitted_bytes >= self.first_bytes();
            let (request_bytes, jumps, left_bytes) = self.part();
            let bytes = request_bytes.max(1).min(left_bytes);
            // Never the end of another request.
            let is_jump = (self.submitted as f64 * jumps).floor()
                < ((self.submitted + 1) as f64 * jumps).floor();
            self.position += u64::from(is_jump);
            let file = u64::from(self.sample.task.0) << FILE_BITS;
            let offset = self.position;
            self.position += bytes;
            self.queue.push_back(Request {
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

    /// When it begins by itself.
    pub(super) fn begins_ns(&self, now_ns: u64) -> Option<u64> {
        let begins_ns = self.spec.start_ns + MS;
        (self.finish_ns == 0 && begins_ns > now_ns).then_some(begins_ns)
    }

    /// Processors that it would keep busy now.
    pub(super) fn processors(&self, now_ns: u64) -> f64 {
        if self.is_thinking(now_ns) { self.spec.processors } else { 0.0 }
    }

    fn is_thinking(&self, now_ns: u64) -> bool {
        self.is_there(now_ns) && self.thinks_ns > 0 && !self.sample.frozen
    }

    /// How fast it thinks where it gets this `share` of each processor that it asks for: 1 is undisturbed.
    fn pace(&self, share: f64) -> f64 {
        let part = self.spec.processors.clamp(0.0, 1.0);
        1.0 / (part / share + 1.0 - part)
    }

    /// When it will have thought, where nothing changes before.
    pub(super) fn thought_ns(&self, now_ns: u64, share: f64) -> Option<u64> {
        let left_ns = (self.thinks_ns as f64 / self.pace(share)).ceil() as u64;
        self.is_thinking(now_ns).then_some(now_ns + left_ns)
    }

    /// It thinks for so long from `now_ns`.
    pub(super) fn think(&mut self, now_ns: u64, elapsed_ns: u64, share: f64) {
        if self.is_thinking(now_ns) {
            let done_ns = (elapsed_ns as f64 * self.pace(share)).ceil() as u64;
            self.thinks_ns = self.thinks_ns.saturating_sub(done_ns);
            self.end_if_done(now_ns + elapsed_ns);
        }
    }

    /// It ends when all is moved and thought; one that is frozen does so when it is thawed.
    fn end_if_done(&mut self, now_ns: u64) {
        let is_done = self.sample.bytes == self.spec.bytes && self.thinks_ns == 0;
        if is_done && !self.sample.frozen {
            self.finish_ns = now_ns;
        }
    }

    pub(super) fn complete(
        &mut self,
        request: Request,
        issued_ns: u64,
        device_ns: u64,
        is_sequential: bool,
        now_ns: u64,
    ) {
        let sample = &mut self.sample;
        sample.bytes += request.bytes;
        sample.requests += 1;
        sample.sequential += u64::from(is_sequential);
        sample.queue_ns += issued_ns - request.submitted_ns;
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

    pub(super) fn order(&mut self, action: Action, now_ns: u64) {
        match action {
            Action::Freeze => {
                self.frozen_since_ns = now_ns;
                self.sample.frozen = true;
            }
            Action::Thaw => {
                self.note_frozen(now_ns);
                self.sample.frozen = false;
                self.end_if_done(now_ns);
            }
        }
    }

    /// Notes how long it has been frozen by now.
    pub(super) fn note_frozen(&mut self, now_ns: u64) {
        if self.sample.frozen {
            self.longest_frozen_ns = self.longest_frozen_ns.max(now_ns - self.frozen_since_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DiskModel, Nothing, Spec, run_beside};

    const DISK: DiskModel =
        DiskModel { bytes_per_s: 100e6, near_ns: 0, far_ns: 0, request_ns: 0, slots: 1 };

    /// How long each of two equal tasks takes that think 100 ms before they read.
    fn took_ns(processors_each: f64, processors: f64) -> Vec<u64> {
        let task =
            Spec { before_ns: 100_000_000, processors: processors_each, ..Spec::stream(1_000_000) };
        run_beside(&DISK, processors, &[task; 2], &mut Nothing, u64::MAX / 2).took_ns
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
