//! Waits of many hosts, in little memory: they are most of a trace.

mod compact_wait;
mod rows_by_thread;

use std::collections::{BTreeMap, HashMap};

use luc_fleet_clocks::HostId;

use crate::host_rows::{ThreadId, ThreadIdentity, ThreadWait};
use compact_wait::{CompactWait, HostThread};
use rows_by_thread::{RowIndex, RowsByThread};

/// Maximum number of waits of one host: they, and the two threads of each, have indices of 32 bits.
const MAX_WAITS: usize = (u32::MAX / 2) as usize;

/// Error: a host has more waits than have indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {MAX_WAITS} waits of one host are too many: take less at once, by time")]
pub struct TooManyWaits;

/// The waits of many hosts.
#[derive(Debug, Clone, Default)]
pub struct FleetWaits {
    of_hosts: BTreeMap<HostId, HostWaits>,
}

impl FleetWaits {
    /// Collects rows of any hosts, in any order.
    ///
    /// # Errors
    /// [`TooManyWaits`].
    pub fn of(rows: &[ThreadWait]) -> Result<Self, TooManyWaits> {
        let mut by_host: BTreeMap<HostId, Vec<ThreadWait>> = BTreeMap::new();
        for row in rows {
            by_host.entry(row.host).or_default().push(*row);
        }
        let mut waits = Self::default();
        for (host, rows) in by_host {
            waits.insert(HostWaits::new(host, rows)?);
        }
        Ok(waits)
    }

    /// Adds or replaces the waits of one host.
    pub fn insert(&mut self, waits: HostWaits) {
        self.of_hosts.insert(waits.host, waits);
    }

    /// Returns the waits of each host, in the order of hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &HostWaits> {
        self.of_hosts.values()
    }

    /// Returns the waits of one host, if it has any.
    #[must_use]
    pub fn host(&self, host: HostId) -> Option<&HostWaits> {
        self.of_hosts.get(&host)
    }

    /// Returns all waits, host by host, and of a host as they came in.
    pub fn iter(&self) -> impl Iterator<Item = ThreadWait> {
        self.hosts().flat_map(HostWaits::iter)
    }

    /// Returns the waits of a thread whose times are in order, if it has any.
    pub(crate) fn of_thread(&self, thread: ThreadId) -> Option<ThreadWaits<'_>> {
        self.host(thread.host)?.of_thread(thread.thread)
    }

    /// Returns the waits that a thread ended by waking others between two times, both included, in the order of
    /// wake-ups.
    pub(crate) fn ended_by(
        &self,
        waker: ThreadId,
        [begin_ns, end_ns]: [u64; 2],
    ) -> impl Iterator<Item = ThreadWait> {
        let waits = self.host(waker.host);
        let of_waker = waits.and_then(|waits| {
            let woken = waits.of_wakers.of(*waits.indices.get(&waker.thread)?);
            let next = woken.partition_point(|&row| waits.row(row).woken_ns() < Some(begin_ns));
            Some(woken[next..].iter().map(|&row| waits.wait(row)))
        });
        let woken = of_waker.into_iter().flatten();
        woken.take_while(move |wait| wait.woken_ns <= Some(end_ns))
    }
}

/// The waits of one host.
#[derive(Debug, Clone)]
pub struct HostWaits {
    host: HostId,
    /// Threads that wait or wake, by index.
    threads: Vec<ThreadIdentity>,
    indices: HashMap<ThreadIdentity, HostThread>,
    /// As they came in.
    rows: Vec<CompactWait>,
    /// Waits of each thread whose times are in order, the earliest first.
    of_threads: RowsByThread,
    /// These waits by the thread that ended them by waking, in the order of wake-ups.
    of_wakers: RowsByThread,
}

impl HostWaits {
    /// Collects a host's rows, in any order.
    ///
    /// # Errors
    /// [`TooManyWaits`].
    pub fn new(
        host: HostId,
        rows: impl IntoIterator<Item = ThreadWait>,
    ) -> Result<Self, TooManyWaits> {
        let mut waits = Self {
            host,
            threads: Vec::new(),
            indices: HashMap::new(),
            rows: Vec::new(),
            of_threads: RowsByThread::default(),
            of_wakers: RowsByThread::default(),
        };
        for wait in rows {
            if waits.rows.len() >= MAX_WAITS {
                return Err(TooManyWaits);
            }
            let thread = waits.index_of(wait.thread);
            let waker = wait.waker.map(|waker| waits.index_of(waker));
            waits.rows.push(CompactWait::new(&wait, thread, waker));
        }
        waits.rows.shrink_to_fit();
        let threads = waits.threads.len();
        let of_threads = RowsByThread::new(
            threads,
            &waits.rows,
            |row| row.is_in_order().then_some(row.thread),
            |a, b| {
                let same = || waits.wait(a).cmp(&waits.wait(b));
                waits.row(a).times().cmp(&waits.row(b).times()).then_with(same)
            },
        );
        let of_wakers = RowsByThread::new(
            threads,
            &waits.rows,
            |row| row.waker().filter(|_| row.is_in_order() && row.woken_ns().is_some()),
            |a, b| waits.row(a).woken_ns().cmp(&waits.row(b).woken_ns()),
        );
        (waits.of_threads, waits.of_wakers) = (of_threads, of_wakers);
        Ok(waits)
    }

    #[must_use]
    pub fn host(&self) -> HostId {
        self.host
    }

    /// Returns all waits as they came in.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ThreadWait> {
        self.rows.iter().map(|row| row.expand(self.host, &self.threads))
    }

    /// Returns the threads that wait or wake, each once.
    pub(crate) fn threads(&self) -> &[ThreadIdentity] {
        &self.threads
    }

    /// Returns the waits of a thread whose times are in order, if it has any.
    pub(crate) fn of_thread(&self, thread: ThreadIdentity) -> Option<ThreadWaits<'_>> {
        let rows = self.of_threads.of(*self.indices.get(&thread)?);
        (!rows.is_empty()).then_some(ThreadWaits { waits: self, rows })
    }

    /// Returns the waits of each thread whose times are in order, without threads that have none.
    pub(crate) fn by_thread(&self) -> impl Iterator<Item = (ThreadIdentity, ThreadWaits<'_>)> {
        let threads = self.threads.iter();
        threads.filter_map(|&thread| Some((thread, self.of_thread(thread)?)))
    }

    fn index_of(&mut self, thread: ThreadIdentity) -> HostThread {
        let next = HostThread(self.threads.len() as u32);
        let index = *self.indices.entry(thread).or_insert(next);
        if index == next {
            self.threads.push(thread);
        }
        index
    }

    fn row(&self, row: RowIndex) -> &CompactWait {
        &self.rows[row.0 as usize]
    }

    fn wait(&self, row: RowIndex) -> ThreadWait {
        self.row(row).expand(self.host, &self.threads)
    }
}

/// The waits of one thread whose times are in order: at least one, the earliest first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadWaits<'w> {
    waits: &'w HostWaits,
    rows: &'w [RowIndex],
}

impl<'w> ThreadWaits<'w> {
    /// Returns the number of waits that began before a time.
    pub(crate) fn began_before(self, at_ns: u64) -> usize {
        self.rows.partition_point(|&row| self.waits.row(row).off_ns < at_ns)
    }

    pub(crate) fn get(self, index: usize) -> Option<ThreadWait> {
        self.rows.get(index).map(|&row| self.waits.wait(row))
    }

    pub(crate) fn last(self) -> Option<ThreadWait> {
        self.rows.last().map(|&row| self.waits.wait(row))
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = ThreadWait> + 'w {
        self.rows.iter().map(move |&row| self.waits.wait(row))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn thread() -> impl Strategy<Value = ThreadIdentity> {
        (0_u32..4, 0_u64..2).prop_map(|(id, start_ns)| ThreadIdentity { id, start_ns })
    }

    fn wait() -> impl Strategy<Value = ThreadWait> {
        let time = || prop_oneof![0_u64..20, Just(u64::MAX)];
        (
            (0_u32..3, thread(), time(), prop::option::of(time()), time()),
            (prop::option::of(thread()), any::<bool>(), any::<bool>()),
            prop::option::of(prop_oneof![0_u32..3, Just(u32::MAX)]),
        )
            .prop_map(
                |(
                    (host, thread, off_ns, woken_ns, on_ns),
                    (waker, input, hand_over),
                    processor,
                )| {
                    ThreadWait {
                        host: HostId(host),
                        thread,
                        off_ns,
                        woken_ns,
                        on_ns,
                        waker,
                        may_be_input: input,
                        may_be_hand_over: hand_over,
                        processor,
                    }
                },
            )
    }

    fn is_in_order(wait: &ThreadWait) -> bool {
        let is_in = |at_ns| wait.off_ns <= at_ns && at_ns <= wait.on_ns;
        wait.off_ns < wait.on_ns && wait.woken_ns.is_none_or(is_in)
    }

    proptest! {
        #[test]
        fn waits_are_as_they_came_in(rows in prop::collection::vec(wait(), 0..60)) {
            let waits = FleetWaits::of(&rows).expect("few");
            let mut by_host = rows.clone();
            by_host.sort_by_key(|wait| wait.host);
            prop_assert_eq!(waits.iter().collect::<Vec<_>>(), by_host);
            let mut in_order: Vec<ThreadWait> = rows.iter().copied().filter(is_in_order).collect();
            in_order.sort_unstable();
            for host in waits.hosts() {
                for &thread in host.threads() {
                    let id = ThreadId { host: host.host(), thread };
                    let is_own = |wait: &&ThreadWait| wait.thread_id() == id;
                    let own: Vec<ThreadWait> = in_order.iter().filter(is_own).copied().collect();
                    let found = waits.of_thread(id);
                    let found = found.into_iter().flat_map(ThreadWaits::iter);
                    prop_assert_eq!(found.collect::<Vec<_>>(), own.clone());
                    for between_ns in [[0, 5], [5, 20], [6, 6], [0, u64::MAX]] {
                        let is_its = |wait: &&ThreadWait| {
                            (wait.host, wait.waker) == (id.host, Some(thread))
                        };
                        let woke = in_order.iter().filter(is_its);
                        let woke = woke.filter_map(|wait| wait.woken_ns);
                        let is_in = |at_ns: &u64| (between_ns[0]..=between_ns[1]).contains(at_ns);
                        let mut woke: Vec<u64> = woke.filter(is_in).collect();
                        woke.sort_unstable();
                        let ended = waits.ended_by(id, between_ns);
                        let ended: Vec<u64> = ended.filter_map(|wait| wait.woken_ns).collect();
                        prop_assert_eq!(ended, woke);
                    }
                }
            }
        }
    }
}
