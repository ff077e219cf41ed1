//! A task's use of a disk.

use luc_events::event_kinds::RequestKind;
use luc_events::tables::BlockRequest;
use luc_events::{Cgroup, Pid, Tgid};

use super::bounded_sample::BoundedSample;
use super::request_sum::SumsByContinuity;
use crate::accounted_threads::AccountedThreads;
use crate::saturating_grow::SaturatingGrow as _;

/// Maximum pause that counts as thinking between two requests. In a longer one the task had other things to do.
const MAX_THINKING_NS: u64 = 250_000_000;
const SECTOR_BYTES: u64 = 512;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ProcessKind {
    /// Only its number is known.
    #[default]
    Unknown,
    /// A kernel thread, which works for others.
    Kernel,
    User,
}

/// The request that the disk served before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestBefore {
    Itself,
    Another,
    /// A kernel thread's, a flush, or none.
    Unknown,
}

/// A task's requests while tasks contended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ContendedRequests {
    /// Requests after another task's.
    pub(super) switched: SumsByContinuity,
    /// Device time of all its requests.
    pub(super) service_ns: u64,
    /// Time that it had a request out while the device served another task.
    pub(super) waited_ns: u64,
    /// Time from its last request's end to its next one, which others used. Waits for a place in the queue do not
    /// count.
    pub(super) thinking_ns: u64,
    pub(super) bytes: u64,
}

impl ContendedRequests {
    fn add(&mut self, other: &Self) {
        self.switched.add(&other.switched);
        self.service_ns.grow(other.service_ns);
        self.waited_ns.grow(other.waited_ns);
        self.thinking_ns.grow(other.thinking_ns);
        self.bytes.grow(other.bytes);
    }
}

/// Delay of a task's requests by another task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DelayByTask {
    /// Time that the task had a request out while the device served the other.
    pub(super) waited_ns: u64,
    /// Requests of the task that came after one of the other's.
    pub(super) switched: SumsByContinuity,
}

/// Sums over a task's requests.
#[derive(Debug, Default)]
pub(super) struct TaskRequests {
    pub(super) process: Tgid,
    pub(super) cgroup: Cgroup,
    pub(super) kind: ProcessKind,
    pub(super) requests: u64,
    pub(super) read_requests: u64,
    pub(super) continuing: u64,
    /// Bytes of requests before the present stretch.
    bytes: u64,
    /// Device time of these requests.
    device_ns: u64,
    /// Time of requests from being queued to their end.
    pub(super) response_ns: u64,
    /// Requests that came after one of its own.
    pub(super) alone: SumsByContinuity,
    /// Requests of `alone` that continue the last one, and were issued while the device had nothing else to answer.
    pub(super) prompt: BoundedSample,
    /// Requests that continue and came after another task's.
    pub(super) late: BoundedSample,
    pub(super) contended: ContendedRequests,
    window: ContendedRequests,
    from: Vec<DelayByTask>,
    next_sector: u64,
    last_complete_ns: u64,
}

impl TaskRequests {
    pub(super) fn new(process: Tgid, threads: &AccountedThreads) -> Self {
        let mut task = Self { process, ..Self::default() };
        task.learn(threads);
        task
    }

    /// Returns the bytes of its requests.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.saturating_add(self.window.bytes)
    }

    /// Returns the device time of its requests.
    pub(super) fn device_ns(&self) -> u64 {
        self.device_ns.saturating_add(self.window.service_ns)
    }

    /// Looks up the kind of the process, if it is unknown.
    pub(super) fn learn(&mut self, threads: &AccountedThreads) {
        if self.kind != ProcessKind::Unknown {
            return;
        }
        self.kind = match threads.is_kernel(self.process) {
            None => return,
            Some(true) => ProcessKind::Kernel,
            Some(false) => ProcessKind::User,
        };
        if let Some((_, cgroup)) = threads.actor(Pid(self.process.0)) {
            self.cgroup = cgroup;
        }
    }

    /// Counts a request that had the device for `service_ns`. Returns the time since when the task has waited for it,
    /// and for no earlier request.
    pub(super) fn serve(
        &mut self,
        row: &BlockRequest,
        service_ns: u64,
        before: RequestBefore,
        last: Option<u16>,
        threads: &AccountedThreads,
    ) -> u64 {
        let continues = row.sector == self.next_sector && self.requests > 0;
        self.next_sector = row.sector.wrapping_add(row.bytes / SECTOR_BYTES);
        let queued_ns = if row.insert_ns == 0 { row.issue_ns } else { row.insert_ns };
        self.requests += 1;
        self.read_requests += u64::from(row.kind == RequestKind::Read);
        self.continuing += u64::from(continues);
        self.response_ns.grow(row.complete_ns.saturating_sub(queued_ns));
        self.window.service_ns.grow(service_ns);
        self.window.bytes.grow(row.bytes);
        match before {
            RequestBefore::Itself => {
                self.alone.record(continues, row.bytes, service_ns);
                // It had to itself what is counted as the device's time for it.
                if continues && service_ns == row.complete_ns - row.issue_ns {
                    self.prompt.add(row.bytes, service_ns);
                }
            }
            RequestBefore::Another => {
                if continues {
                    self.late.add(row.bytes, service_ns);
                }
                let switched = &mut self.window.switched;
                switched.record(continues, row.bytes, service_ns);
                let pause_ns = queued_ns.saturating_sub(self.last_complete_ns);
                if self.last_complete_ns > 0 && (1..MAX_THINKING_NS).contains(&pause_ns) {
                    let waited = threads.device_wait(row.issuer);
                    let waited_ns = waited.within(self.last_complete_ns, queued_ns);
                    self.window.thinking_ns.grow(pause_ns - waited_ns);
                }
                if let Some(last) = last {
                    let from = self.from(last);
                    from.switched.record(continues, row.bytes, service_ns);
                }
            }
            RequestBefore::Unknown => {}
        }
        let waiting_ns = queued_ns.max(self.last_complete_ns);
        self.last_complete_ns = self.last_complete_ns.max(row.complete_ns);
        waiting_ns
    }

    /// Charges a wait to the task at `place`, which was served meanwhile.
    pub(super) fn wait_for(&mut self, place: u16, waited_ns: u64) {
        self.window.waited_ns.grow(waited_ns);
        self.from(place).waited_ns.grow(waited_ns);
    }

    fn from(&mut self, place: u16) -> &mut DelayByTask {
        let place = usize::from(place);
        if place >= self.from.len() {
            self.from.resize(place + 1, DelayByTask::default());
        }
        &mut self.from[place]
    }

    /// Returns the effects of other tasks, with their places.
    pub(super) fn others(&self) -> impl Iterator<Item = (usize, &DelayByTask)> {
        self.from.iter().enumerate()
    }

    /// Ends a stretch, which counts if tasks contended in it.
    pub(super) fn end_window(&mut self, is_contended: bool) {
        if self.window.service_ns == 0 && self.window.bytes == 0 {
            return;
        }
        self.bytes.grow(self.window.bytes);
        self.device_ns.grow(self.window.service_ns);
        if is_contended {
            self.contended.add(&self.window);
        }
        self.window = ContendedRequests::default();
    }

    /// Adds the sums of a task that loses its place.
    pub(super) fn take_in(&mut self, gone: &Self) {
        self.requests += gone.requests;
        self.read_requests += gone.read_requests;
        self.continuing += gone.continuing;
        self.bytes.grow(gone.bytes());
        self.device_ns.grow(gone.device_ns());
        self.response_ns.grow(gone.response_ns);
    }

    /// Counts the effects of the task at `place` as those of `others` from now on.
    pub(super) fn forget(&mut self, place: u16, others: u16) {
        let Some(found) = self.from.get_mut(usize::from(place)) else {
            return;
        };
        let gone = std::mem::take(found);
        let sum = self.from(others);
        sum.waited_ns.grow(gone.waited_ns);
        sum.switched.add(&gone.switched);
    }
}
