//! Times at which a thread can have put a task into a queue, or taken one out of it.

use luc_fleet_clocks::HostId;
use rand::{Rng, RngExt as _};

use crate::fleet_waits::{FleetWaits, HostWaits};
use crate::host_rows::{ThreadId, ThreadIdentity, ThreadWait};

/// Maximum number of unusual pieces of a thread's running time.
const MAX_PIECES: usize = 9;
/// Maximum time from the sleep after a request to an unusual put, and from a take to the call, ns.
const MAX_DELAY_NS: u64 = 30_000_000;
/// Share of tasks that are put or taken at another time than the usual one: the thread has slept since, for a lock.
const UNUSUAL_SHARE: f64 = 0.1;
/// The same share for the first task of a connection: the thread then has much to load or to open.
const UNUSUAL_SHARE_AT_FIRST: f64 = 0.5;
/// Maximum time from a put to the wake-up that it causes, ns.
const MAX_BEFORE_WAKE_UP_NS: u64 = 8_000;

/// Intervals `[begin, end]`, whose times are all equally likely.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Pieces(Vec<[u64; 2]>);

impl Pieces {
    fn draw(&self, rng: &mut impl Rng) -> u64 {
        let total: u64 = self.0.iter().map(|[begin, end]| end - begin).sum();
        let mut left = if total > 0 { rng.random_range(0..total) } else { 0 };
        for &[begin, end] in &self.0 {
            if left <= end - begin {
                return begin + left;
            }
            left -= end - begin;
        }
        self.0.last().map_or(0, |[_, end]| *end)
    }
}

/// Times at which a task can have been put or taken.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct QueueTaskTimes {
    usual: Pieces,
    other: Pieces,
    unusual_share: f64,
}

impl QueueTaskTimes {
    pub(super) fn draw(&self, rng: &mut impl Rng) -> u64 {
        if self.is_unusual(rng) { self.other.draw(rng) } else { self.usual.draw(rng) }
    }

    fn is_unusual(&self, rng: &mut impl Rng) -> bool {
        !self.other.0.is_empty() && rng.random_bool(self.unusual_share)
    }

    /// Returns about the middle of the usual times.
    pub(super) fn middle(&self) -> u64 {
        let [first, last] = [self.usual.0.first(), self.usual.0.last()];
        let begin = first.map_or(0, |[begin, _]| *begin);
        begin + last.map_or(0, |[_, end]| *end - begin) / 2
    }

    /// Returns the first of the usual times.
    pub(super) fn begin(&self) -> u64 {
        self.usual.0.first().map_or(0, |[begin, _]| *begin)
    }
}

/// Times at which the tasks of a request can have been put, one after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TaskPutTimes {
    all: QueueTaskTimes,
    /// Times of the first task and of the others, if the first woke somebody.
    first: Option<[Pieces; 2]>,
}

impl TaskPutTimes {
    /// Draws the times of tasks, in order.
    pub(super) fn draw(&self, rng: &mut impl Rng, times: &mut [u64]) {
        let mut usual = times.len();
        if self.all.is_unusual(rng) {
            // From some task on all are late.
            usual = rng.random_range(0..times.len());
        }
        for (at, time) in times.iter_mut().enumerate() {
            *time = match &self.first {
                _ if at >= usual => self.all.other.draw(rng),
                Some([first, rest]) => if at == 0 { first } else { rest }.draw(rng),
                None => self.all.usual.draw(rng),
            };
        }
        times.sort_unstable();
    }

    pub(super) fn middle(&self) -> u64 {
        self.all.middle()
    }
}

/// A call that a thread sent, or a request that it read.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallOrReadMoment {
    pub(super) thread: ThreadIdentity,
    pub(super) at_ns: u64,
    /// Whether it is the first of its connection.
    pub(super) is_first: bool,
}

/// The threads of a process: some put tasks, and others take them.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueThreads<'a> {
    host: HostId,
    waits: &'a FleetWaits,
    of_host: &'a HostWaits,
    /// Threads that take tasks, sorted.
    takers: &'a [ThreadIdentity],
}

impl<'a> QueueThreads<'a> {
    /// `None`: the host has no waits.
    pub(super) fn new(
        host: HostId,
        waits: &'a FleetWaits,
        takers: &'a [ThreadIdentity],
    ) -> Option<Self> {
        Some(Self { host, waits, of_host: waits.host(host)?, takers })
    }

    /// Returns the times at which the task of a call can have been taken. `before_ns` is when its thread last did
    /// something for another task. Usually the thread took it since it last slept, and before it woke another taker for
    /// the next task.
    pub(super) fn taken(&self, sent: CallOrReadMoment, before_ns: u64) -> QueueTaskTimes {
        let earliest_ns = before_ns.max(sent.at_ns.saturating_sub(MAX_DELAY_NS));
        let woke_up_ns = self.woke_up_before(sent.thread, sent.at_ns);
        let begin_ns = woke_up_ns.unwrap_or(0).max(earliest_ns);
        let wakes_ns = self.first_taker_woken(sent.thread, [begin_ns, sent.at_ns]);
        let mut other = self.running(sent.thread, [earliest_ns, begin_ns]);
        other.drain(..other.len().saturating_sub(MAX_PIECES));
        QueueTaskTimes {
            usual: Pieces(self.running(sent.thread, [begin_ns, wakes_ns.unwrap_or(sent.at_ns)])),
            other: Pieces(other),
            unusual_share: unusual_share(sent),
        }
    }

    /// Returns the times at which the tasks of a request can have been put. Usually its thread puts them before it
    /// sleeps to wait for their results. The first of them may wake a taker.
    pub(super) fn put(&self, read: CallOrReadMoment, answered_ns: u64) -> TaskPutTimes {
        let sleeps_ns = self.sleeps_after(read.thread, read.at_ns).unwrap_or(read.at_ns);
        let latest_ns = answered_ns.min(sleeps_ns.saturating_add(MAX_DELAY_NS));
        let mut other = self.running(read.thread, [sleeps_ns, latest_ns]);
        other.truncate(MAX_PIECES);
        let wakes_ns = self.first_taker_woken(read.thread, [read.at_ns, sleeps_ns]);
        let first = wakes_ns.map(|wakes_ns| {
            let begin_ns = read.at_ns.max(wakes_ns.saturating_sub(MAX_BEFORE_WAKE_UP_NS));
            let between = |times| Pieces(self.running(read.thread, times));
            [between([begin_ns, wakes_ns]), between([wakes_ns, sleeps_ns])]
        });
        TaskPutTimes {
            all: QueueTaskTimes {
                usual: Pieces(self.running(read.thread, [read.at_ns, sleeps_ns])),
                other: Pieces(other),
                unusual_share: unusual_share(read),
            },
            first,
        }
    }

    /// Returns the intervals in which a thread ran between two times; all of it, if the thread never ran.
    fn running(&self, thread: ThreadIdentity, [begin_ns, end_ns]: [u64; 2]) -> Vec<[u64; 2]> {
        if begin_ns >= end_ns {
            return vec![[end_ns, end_ns]];
        }
        let (mut pieces, mut from_ns) = (Vec::new(), begin_ns);
        for wait in self.waits_from(thread, begin_ns) {
            if wait.off_ns >= end_ns {
                break;
            }
            if wait.off_ns > from_ns {
                pieces.push([from_ns, wait.off_ns]);
            }
            from_ns = from_ns.max(wait.on_ns);
        }
        if from_ns < end_ns {
            pieces.push([from_ns, end_ns]);
        }
        if pieces.is_empty() {
            pieces.push([begin_ns, end_ns]);
        }
        pieces
    }

    /// Returns the waits of a thread that had not ended at a time.
    fn waits_from(&self, thread: ThreadIdentity, at_ns: u64) -> impl Iterator<Item = ThreadWait> {
        let waits = self.of_host.of_thread(thread);
        let waits = waits.map(|waits| (waits, waits.began_before(at_ns).saturating_sub(1)));
        let waits = waits
            .into_iter()
            .flat_map(|(waits, next)| (next..).map_while(move |index| waits.get(index)));
        waits.skip_while(move |wait| wait.on_ns <= at_ns)
    }

    fn woke_up_before(&self, thread: ThreadIdentity, at_ns: u64) -> Option<u64> {
        let waits = self.of_host.of_thread(thread)?;
        let before = (0..waits.began_before(at_ns)).rev();
        let before = before.map_while(|index| waits.get(index));
        let mut sleeps = before.filter(|wait| wait.on_ns <= at_ns && is_sleep(wait));
        sleeps.next().map(|wait| wait.on_ns)
    }

    fn sleeps_after(&self, thread: ThreadIdentity, at_ns: u64) -> Option<u64> {
        let waits = self.waits_from(thread, at_ns);
        let mut sleeps = waits.filter(|wait| wait.off_ns > at_ns && is_sleep(wait));
        sleeps.next().map(|wait| wait.off_ns)
    }

    fn first_taker_woken(&self, thread: ThreadIdentity, between_ns: [u64; 2]) -> Option<u64> {
        let host = self.host;
        let woken = self.waits.ended_by(ThreadId { host, thread }, between_ns);
        let mut takers = woken.filter(|wait| self.takers.binary_search(&wait.thread).is_ok());
        takers.next()?.woken_ns
    }
}

/// Whether a thread left its processor by itself. A thread that was preempted is runnable all along.
fn is_sleep(wait: &ThreadWait) -> bool {
    wait.woken_ns.is_some_and(|woken_ns| woken_ns > wait.off_ns || wait.waker.is_some())
}

fn unusual_share(moment: CallOrReadMoment) -> f64 {
    if moment.is_first { UNUSUAL_SHARE_AT_FIRST } else { UNUSUAL_SHARE }
}
