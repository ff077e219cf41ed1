//! Tasks that share a disk, and the cost of that.
//!
//! A disk's time is divided among its requests. A request has the device until its own end. It has it from its issue,
//! or from the end of the request before it if that is later. On a disk that serves several requests at once these
//! intervals are short; on a disk with an arm they contain the arm's moves. A *switch* is a request that follows
//! another task's. Its cost is the extra time, compared with a request that follows its own task's ([`estimate`]).
//!
//! A task is a process. Kernel threads write for others, so they are no tasks. A process whose name is not known
//! is no task either. The time of both counts as the disk's.

use crate::saturating_grow::SaturatingGrow as _;

mod bounded_sample;
mod estimate;
mod report;
pub(crate) mod reported_figures;
mod request_sum;
mod task_requests;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use luc_events::Tgid;
use luc_events::event_kinds::RequestKind;
use luc_events::tables::BlockRequest;

use crate::accounted_threads::AccountedThreads;
use crate::fast_hash::FastMap;

pub use reported_figures::{DiskContention, DiskTask, TaskSlowdown, UndisturbedBasis};

use task_requests::{ProcessKind, RequestBefore, TaskRequests};

/// Length of the stretches over which contention is judged. A cheap turn has 250 ms; a disk with an arm serves some 20
/// requests in a stretch.
const WINDOW_NS: u64 = 200_000_000;
/// Minimum busy share of a stretch that counts.
const MIN_BUSY: f64 = 0.85;
/// Minimum number of switches between tasks in a stretch that counts.
const MIN_SWITCHES: u32 = 4;
/// Maximum number of separate tasks on a disk. The first place is for all others.
const MAX_TASKS: usize = 64;
/// The place of all other tasks.
const OTHERS: u16 = 0;
/// Number of recently served requests that are remembered, to charge waits to them. A queue holds fewer.
const MAX_SERVED: usize = 1_024;

/// A disk's service to its tasks.
#[derive(Debug)]
pub(crate) struct DiskSharing {
    tasks: Vec<TaskRequests>,
    places: FastMap<u32, u16>,
    /// The task that was served last, unless a flush came after it.
    last: Option<u16>,
    /// The last two places: the next is usually one of them.
    recent: [u16; 2],
    /// Whether the stretch before this one had switches.
    had_switches: bool,
    /// Time until which the disk has been busy.
    until_ns: u64,
    served: VecDeque<Served>,
    busy_ns: u64,
    window: Stretch,
    together: Together,
}

/// One request's time at the device.
#[derive(Clone, Copy, Debug)]
struct Served {
    begin_ns: u64,
    end_ns: u64,
    place: u16,
}

#[derive(Debug, Default)]
struct Stretch {
    begin_ns: u64,
    busy_ns: u64,
    bytes: u64,
    switches: u32,
}

/// All stretches in which tasks contended.
#[derive(Clone, Debug, Default)]
struct Together {
    wall_ns: u64,
    busy_ns: u64,
    bytes: u64,
}

impl Default for DiskSharing {
    fn default() -> Self {
        Self {
            tasks: vec![TaskRequests::default()],
            places: FastMap::default(),
            last: None,
            recent: [OTHERS; 2],
            had_switches: false,
            until_ns: 0,
            served: VecDeque::new(),
            busy_ns: 0,
            window: Stretch::default(),
            together: Together::default(),
        }
    }
}

impl DiskSharing {
    /// Takes in a request. Requests come in the order of their ends.
    pub(crate) fn add(&mut self, row: &BlockRequest, threads: &AccountedThreads) {
        if row.complete_ns >= self.window.begin_ns.saturating_add(WINDOW_NS) {
            self.end_window(row.complete_ns, threads);
        }
        let begin_ns = row.issue_ns.max(self.until_ns).min(row.complete_ns);
        let service_ns = row.complete_ns - begin_ns;
        self.until_ns = self.until_ns.max(row.complete_ns);
        self.busy_ns.grow(service_ns);
        self.window.busy_ns.grow(service_ns);
        if !matches!(row.kind, RequestKind::Read | RequestKind::Write) {
            self.last = None;
            return;
        }
        self.window.bytes.grow(row.bytes);
        let place = self.place(row.issuer_process, threads);
        let before = self.before(place);
        self.window.switches += u32::from(before == RequestBefore::Another);
        let last = self.last.replace(place);
        let task = &mut self.tasks[usize::from(place)];
        let waiting_ns = task.serve(row, service_ns, before, last, threads);
        // Most disks have one task most of the time.
        if self.had_switches || self.window.switches > 0 {
            self.charge_wait(place, waiting_ns, row.complete_ns);
            if self.served.len() == MAX_SERVED {
                self.served.pop_front();
            }
            self.served.push_back(Served { begin_ns, end_ns: row.complete_ns, place });
        }
    }

    /// Returns what the disk served before a request of `place`.
    fn before(&self, place: u16) -> RequestBefore {
        let is_user = |place: u16| self.tasks[usize::from(place)].kind == ProcessKind::User;
        match self.last {
            Some(last) if last == place && place != OTHERS => RequestBefore::Itself,
            Some(last) if is_user(last) && is_user(place) => RequestBefore::Another,
            _ => RequestBefore::Unknown,
        }
    }

    /// Charges a task's wait between two times to the tasks that were served meanwhile.
    fn charge_wait(&mut self, place: u16, from_ns: u64, to_ns: u64) {
        let task = &mut self.tasks[usize::from(place)];
        for served in self.served.iter().rev() {
            if served.end_ns <= from_ns {
                break;
            }
            if served.place != place {
                let waited_ns =
                    (served.end_ns.min(to_ns)).saturating_sub(served.begin_ns.max(from_ns));
                task.wait_for(served.place, waited_ns);
            }
        }
    }

    /// Returns the place of a process. If there is no room, the task that has used the disk least loses its place.
    fn place(&mut self, process: Tgid, threads: &AccountedThreads) -> u16 {
        for place in self.recent {
            if place != OTHERS && self.tasks[usize::from(place)].process == process {
                return place;
            }
        }
        let place = match self.places.get(&process.0) {
            Some(&place) => place,
            None => self.new_place(process, threads),
        };
        self.recent = [place, self.recent[0]];
        place
    }

    fn new_place(&mut self, process: Tgid, threads: &AccountedThreads) -> u16 {
        let task = TaskRequests::new(process, threads);
        let place = if self.tasks.len() <= MAX_TASKS {
            self.tasks.push(task);
            (self.tasks.len() - 1) as u16
        } else {
            let place = self.least_used();
            self.forget(place);
            self.tasks[usize::from(place)] = task;
            place
        };
        self.places.insert(process.0, place);
        place
    }

    fn least_used(&self) -> u16 {
        (1..self.tasks.len())
            .filter(|&place| self.last != Some(place as u16))
            .min_by_key(|&place| self.tasks[place].device_ns())
            .unwrap_or(1) as u16
    }

    /// Counts a task among the others from now on.
    fn forget(&mut self, place: u16) {
        let gone = std::mem::take(&mut self.tasks[usize::from(place)]);
        self.places.remove(&gone.process.0);
        self.tasks[usize::from(OTHERS)].take_in(&gone);
        for task in &mut self.tasks {
            task.forget(place, OTHERS);
        }
        for served in &mut self.served {
            if served.place == place {
                served.place = OTHERS;
            }
        }
    }

    /// Ends a stretch and begins the next one at `now_ns`.
    fn end_window(&mut self, now_ns: u64, threads: &AccountedThreads) {
        let window = std::mem::take(&mut self.window);
        let wall_ns = now_ns.saturating_sub(window.begin_ns);
        let is_busy = window.busy_ns as f64 >= MIN_BUSY * wall_ns as f64;
        let is_contended = is_busy && window.switches >= MIN_SWITCHES;
        if is_contended {
            self.together.wall_ns += wall_ns;
            self.together.busy_ns += window.busy_ns.min(wall_ns);
            self.together.bytes.grow(window.bytes);
        }
        self.had_switches = window.switches > 0;
        if !self.had_switches {
            self.served.clear();
        }
        for task in &mut self.tasks {
            task.end_window(is_contended);
            task.learn(threads);
        }
        self.window.begin_ns = now_ns;
    }
}
