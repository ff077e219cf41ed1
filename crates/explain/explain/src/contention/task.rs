//! One task's use of one disk.

use luc_events::codes::RequestKind;
use luc_events::tables::Request;
use luc_events::{Cgroup, Pid, Tgid};

use super::samples::Samples;
use super::sum::ByKind;
use crate::threads::Threads;

/// A longer pause is no thinking between two requests: the task had other things to do.
const MAX_THINKING_NS: u64 = 250_000_000;
/// Length of a sector, in bytes.
const SECTOR_BYTES: u64 = 512;

/// What a process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing but its number is known.
    #[default]
    Unknown,
    /// It works for others.
    Kernel,
    User,
}

/// Whom the disk served before a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Itself,
    Another,
    /// A kernel thread, a flush, or nobody.
    Unknown,
}

/// What happened while tasks contended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contended {
    /// Requests after another task's.
    pub(super) switched: ByKind,
    /// The device's time for all of its requests.
    pub(super) service_ns: u64,
    /// Time that it had a request out while the device was at another's.
    pub(super) waited_ns: u64,
    /// Time between its last request's end and the next one, which others used, without waits for a place in the
    /// queue.
    pub(super) thinking_ns: u64,
    pub(super) bytes: u64,
}

impl Contended {
    fn add(&mut self, other: &Self) {
        self.switched.add(&other.switched);
        let grow = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        grow(&mut self.service_ns, other.service_ns);
        grow(&mut self.waited_ns, other.waited_ns);
        grow(&mut self.thinking_ns, other.thinking_ns);
        grow(&mut self.bytes, other.bytes);
    }
}

/// What another did to a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FromAnother {
    /// Time that the task had a request out while the device was at the other's.
    pub(super) waited_ns: u64,
    /// The task's requests that came after one of the other's.
    pub(super) switched: ByKind,
}

/// Sums over a task's requests.
#[derive(Debug, Default)]
pub(super) struct Task {
    pub(super) process: Tgid,
    pub(super) cgroup: Cgroup,
    pub(super) kind: Kind,
    pub(super) requests: u64,
    pub(super) read_requests: u64,
    pub(super) continuing: u64,
    /// Bytes of requests before the stretch that is under way,
    bytes: u64,
    /// and the device's time for them.
    device_ns: u64,
    /// From being queued to the end.
    pub(super) response_ns: u64,
    /// Requests after one of its own.
    pub(super) alone: ByKind,
    /// Of these, requests that continue and were issued when the device had nothing else to answer.
    pub(super) prompt: Samples,
    /// Requests that continue and came after another task's.
    pub(super) late: Samples,
    pub(super) contended: Contended,
    window: Contended,
    from: Vec<FromAnother>,
    next_sector: u64,
    last_complete_ns: u64,
}

impl Task {
    pub(super) fn new(process: Tgid, threads: &Threads) -> Self {
        let mut task = Self { process, ..Self::default() };
        task.learn(threads);
        task
    }

    /// Bytes of its requests.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.saturating_add(self.window.bytes)
    }

    /// The device's time for its requests.
    pub(super) fn device_ns(&self) -> u64 {
        self.device_ns.saturating_add(self.window.service_ns)
    }

    /// Looks up what is not known yet.
    pub(super) fn learn(&mut self, threads: &Threads) {
        if self.kind != Kind::Unknown {
            return;
        }
        self.kind = match threads.is_kernel(self.process) {
            None => return,
            Some(true) => Kind::Kernel,
            Some(false) => Kind::User,
        };
        if let Some((_, cgroup)) = threads.actor(Pid(self.process.0)) {
            self.cgroup = cgroup;
        }
    }

    /// Counts a request that had the device for `service_ns`. Returns from when on the task has waited for it, without
    /// what was waited for an earlier one.
    pub(super) fn serve(
        &mut self,
        row: &Request,
        service_ns: u64,
        (before, last): (Before, Option<u16>),
        threads: &Threads,
    ) -> u64 {
        let continues = row.sector == self.next_sector && self.requests > 0;
        self.next_sector = row.sector.wrapping_add(row.bytes / SECTOR_BYTES);
        let queued_ns = if row.insert_ns == 0 { row.issue_ns } else { row.insert_ns };
        self.requests += 1;
        self.read_requests += u64::from(row.kind == RequestKind::Read);
        self.continuing += u64::from(continues);
        let grow = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        grow(&mut self.response_ns, row.complete_ns.saturating_sub(queued_ns));
        grow(&mut self.window.service_ns, service_ns);
        grow(&mut self.window.bytes, row.bytes);
        match before {
            Before::Itself => {
                self.alone.record(continues, row.bytes, service_ns);
                // It had to itself what is counted as the device's time for it.
                if continues && service_ns == row.complete_ns - row.issue_ns {
                    self.prompt.add(row.bytes, service_ns);
                }
            }
            Before::Another => {
                if continues {
                    self.late.add(row.bytes, service_ns);
                }
                let switched = &mut self.window.switched;
                switched.record(continues, row.bytes, service_ns);
                let pause_ns = queued_ns.saturating_sub(self.last_complete_ns);
                if self.last_complete_ns > 0 && (1..MAX_THINKING_NS).contains(&pause_ns) {
                    let waited = threads.device_wait(row.issuer);
                    let waited_ns = waited.within(self.last_complete_ns, queued_ns);
                    grow(&mut self.window.thinking_ns, pause_ns - waited_ns);
                }
                if let Some(last) = last {
                    let from = self.from(last);
                    from.switched.record(continues, row.bytes, service_ns);
                }
            }
            Before::Unknown => {}
        }
        let waiting_ns = queued_ns.max(self.last_complete_ns);
        self.last_complete_ns = self.last_complete_ns.max(row.complete_ns);
        waiting_ns
    }

    /// Charges a wait to who was served meanwhile.
    pub(super) fn wait_for(&mut self, place: u16, waited_ns: u64) {
        let sum = &mut self.window.waited_ns;
        *sum = sum.saturating_add(waited_ns);
        let sum = &mut self.from(place).waited_ns;
        *sum = sum.saturating_add(waited_ns);
    }

    fn from(&mut self, place: u16) -> &mut FromAnother {
        let place = usize::from(place);
        if place >= self.from.len() {
            self.from.resize(place + 1, FromAnother::default());
        }
        &mut self.from[place]
    }

    /// What others did to it, with their places.
    pub(super) fn others(&self) -> impl Iterator<Item = (usize, &FromAnother)> {
        self.from.iter().enumerate()
    }

    /// Ends a stretch, which counts if tasks contended in it.
    pub(super) fn end_window(&mut self, is_contended: bool) {
        if self.window.service_ns == 0 && self.window.bytes == 0 {
            return;
        }
        self.bytes = self.bytes.saturating_add(self.window.bytes);
        self.device_ns = self.device_ns.saturating_add(self.window.service_ns);
        if is_contended {
            self.contended.add(&self.window);
        }
        self.window = Contended::default();
    }

    /// Adds another task's sums, for tasks that are not told apart.
    pub(super) fn take_in(&mut self, gone: &Self) {
        self.requests += gone.requests;
        self.read_requests += gone.read_requests;
        self.continuing += gone.continuing;
        let grow = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        grow(&mut self.bytes, gone.bytes());
        grow(&mut self.device_ns, gone.device_ns());
        grow(&mut self.response_ns, gone.response_ns);
    }

    /// What the task at `place` did to this one is from now on what `others` did.
    pub(super) fn forget(&mut self, place: u16, others: u16) {
        let Some(found) = self.from.get_mut(usize::from(place)) else {
            return;
        };
        let gone = std::mem::take(found);
        let sum = self.from(others);
        sum.waited_ns = sum.waited_ns.saturating_add(gone.waited_ns);
        sum.switched.add(&gone.switched);
    }
}
