//! Tasks of the simulated disk.

use std::collections::VecDeque;

use super::super::sample::{Action, Class, TaskId, TaskSample};

pub(in super::super) const MS: u64 = 1_000_000;
/// A request of a stream, bytes.
pub(super) const BLOCK: u64 = 128 << 10;

/// What a task does.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Spec {
    pub(super) class: Class,
    pub(super) weight: u32,
    pub(super) start_ns: u64,
    /// Bytes in all; `u64::MAX`: it does not end.
    pub(super) bytes: u64,
    pub(super) request_bytes: u64,
    /// Requests that it has out at a time.
    pub(super) depth: u32,
    pub(super) is_sequential: bool,
    /// Processor time after each request, ns.
    pub(super) pause_ns: u64,
    /// After so many requests it computes for so long, ns.
    pub(super) phase: Option<(u64, u64)>,
    /// It submits at multiples of this time, or when its last request is done, ns.
    pub(super) period_ns: Option<u64>,
    /// Whether the policy is told what it has yet to move.
    pub(super) is_size_known: bool,
}

impl Spec {
    /// Reads a file from end to end.
    pub(in super::super) fn stream(bytes: u64) -> Self {
        Self {
            class: Class::Batch,
            weight: 100,
            start_ns: 0,
            bytes,
            request_bytes: BLOCK,
            depth: 1,
            is_sequential: true,
            pause_ns: 0,
            phase: None,
            period_ns: None,
            is_size_known: true,
        }
    }

    /// Reads 4 KiB here and there.
    pub(super) fn random(requests: u64) -> Self {
        Self {
            bytes: requests * 4096,
            request_bytes: 4096,
            is_sequential: false,
            ..Self::stream(0)
        }
    }

    /// Reads 4 KiB here and there every so often, is protected, and does not end.
    pub(super) fn client(period_ns: u64) -> Self {
        Self {
            class: Class::Protected,
            bytes: u64::MAX,
            period_ns: Some(period_ns),
            is_size_known: false,
            ..Self::random(1)
        }
    }

    pub(super) fn unknown(self) -> Self {
        Self {
            is_size_known: false,
            ..self
        }
    }

    pub(super) fn deep(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    pub(super) fn pausing(self, pause_ns: u64) -> Self {
        Self { pause_ns, ..self }
    }

    pub(super) fn computing(self, requests: u64, compute_ns: u64) -> Self {
        Self {
            phase: Some((requests, compute_ns)),
            ..self
        }
    }

    pub(super) fn from(self, start_ns: u64) -> Self {
        Self { start_ns, ..self }
    }
}

/// A request: where, how much, since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) position: u64,
    pub(super) bytes: u64,
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
    /// It computes until then, ns.
    ready_ns: u64,
    /// What it had yet to compute when it was frozen, ns.
    held_ns: u64,
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
        Self {
            spec,
            sample,
            queue: VecDeque::new(),
            submitted_bytes: 0,
            submitted: 0,
            ready_ns: spec.start_ns + MS,
            held_ns: 0,
            frozen_since_ns: 0,
            finish_ns: 0,
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
                .then(|| self.spec.bytes - self.sample.bytes),
            ..self.sample
        }
    }

    /// Submits what it can.
    pub(super) fn submit(&mut self, now_ns: u64) {
        while self.is_there(now_ns) && self.can_submit() && now_ns >= self.ready_ns {
            let bytes = self
                .spec
                .request_bytes
                .min(self.spec.bytes - self.submitted_bytes);
            let file = u64::from(self.sample.task.0) << 48;
            let offset = if self.spec.is_sequential {
                self.submitted_bytes
            } else {
                // Never the end of another request.
                (self.submitted * 7_919 % 1_000_003) * 2 * self.spec.request_bytes + 1
            };
            self.queue.push_back(Request {
                position: file + offset,
                bytes,
                submitted_ns: now_ns,
            });
            self.submitted_bytes += bytes;
            self.submitted += 1;
            self.sample.outstanding += 1;
            self.sample.last_submit_ns = now_ns;
        }
    }

    fn can_submit(&self) -> bool {
        !self.sample.frozen
            && self.sample.outstanding < self.spec.depth
            && self.submitted_bytes < self.spec.bytes
    }

    /// When it does something by itself.
    pub(super) fn next_ns(&self, now_ns: u64) -> Option<u64> {
        (self.can_submit() && self.ready_ns > now_ns).then_some(self.ready_ns)
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
        let mut busy_ns = self.spec.pause_ns;
        if let Some((requests, compute_ns)) = self.spec.phase
            && sample.requests.is_multiple_of(requests)
        {
            busy_ns += compute_ns;
        }
        if let Some(period_ns) = self.spec.period_ns {
            busy_ns += (request.submitted_ns + period_ns).saturating_sub(now_ns);
        }
        if sample.frozen {
            self.held_ns = busy_ns;
        } else if busy_ns > 0 {
            self.ready_ns = now_ns + busy_ns;
        }
        if sample.bytes == self.spec.bytes {
            self.note_frozen(now_ns);
            self.sample.frozen = false;
            self.finish_ns = now_ns;
        }
    }

    pub(super) fn order(&mut self, action: Action, now_ns: u64) {
        match action {
            Action::Freeze => {
                self.held_ns = self.ready_ns.saturating_sub(now_ns);
                self.frozen_since_ns = now_ns;
                self.sample.frozen = true;
            }
            Action::Thaw => {
                self.note_frozen(now_ns);
                self.ready_ns = now_ns + self.held_ns;
                self.sample.frozen = false;
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
