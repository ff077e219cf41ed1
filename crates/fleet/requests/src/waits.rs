//! The waits of many hosts, in little memory: traces have more of them than of all else.

mod groups;
mod row;

use std::collections::{BTreeMap, HashMap};

use luc_fleet_clocks::HostId;

use crate::rows::{Thread, ThreadId, Wait};
use groups::Groups;
use row::Row;

/// So many waits of one host, and the two threads of each, have numbers of 32 bits.
const MOST: usize = (u32::MAX / 2) as usize;

/// A host has more waits than have numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {MOST} waits of one host are too many: take less at once, by time")]
pub struct TooManyWaits;

/// The waits of many hosts.
#[derive(Debug, Clone, Default)]
pub struct Waits {
    of_hosts: BTreeMap<HostId, HostWaits>,
}

impl Waits {
    /// Of rows of any hosts, in any order.
    ///
    /// # Errors
    /// [`TooManyWaits`].
    pub fn of(rows: &[Wait]) -> Result<Self, TooManyWaits> {
        let mut by_host: BTreeMap<HostId, Vec<Wait>> = BTreeMap::new();
        for row in rows {
            by_host.entry(row.host).or_default().push(*row);
        }
        let mut waits = Self::default();
        for (host, rows) in by_host {
            waits.insert(HostWaits::new(host, rows)?);
        }
        Ok(waits)
    }

    /// Adds those of one host, in place of what there was of it.
    pub fn insert(&mut self, waits: HostWaits) {
        self.of_hosts.insert(waits.host, waits);
    }

    /// Those of each host, in the order of hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &HostWaits> {
        self.of_hosts.values()
    }

    /// Those of one host, if it has any.
    #[must_use]
    pub fn host(&self, host: HostId) -> Option<&HostWaits> {
        self.of_hosts.get(&host)
    }

    /// All of them: host by host, and of a host as they came in.
    pub fn iter(&self) -> impl Iterator<Item = Wait> {
        self.hosts().flat_map(HostWaits::iter)
    }

    /// Those of a thread whose times are in order, if it has any.
    pub(crate) fn of_thread(&self, thread: ThreadId) -> Option<ThreadWaits<'_>> {
        self.host(thread.host)?.of_thread(thread.thread)
    }

    /// The waits that a thread ended by waking others between two times, which count, in the order in which it did.
    pub(crate) fn ended_by(
        &self,
        waker: ThreadId,
        [begin_ns, end_ns]: [u64; 2],
    ) -> impl Iterator<Item = Wait> {
        let waits = self.host(waker.host);
        let of_waker = waits.and_then(|waits| {
            let woken = waits.of_wakers.of(*waits.numbers.get(&waker.thread)?);
            let is_before = |at: &u32| waits.rows[*at as usize].woken_ns() < Some(begin_ns);
            let next = woken.partition_point(is_before);
            Some(woken[next..].iter().map(|&at| waits.wait(at)))
        });
        let woken = of_waker.into_iter().flatten();
        woken.take_while(move |wait| wait.woken_ns <= Some(end_ns))
    }
}

/// The waits of one host.
#[derive(Debug, Clone)]
pub struct HostWaits {
    host: HostId,
    /// Those who wait or wake, by their numbers here.
    threads: Vec<Thread>,
    numbers: HashMap<Thread, u32>,
    /// As they came in.
    rows: Vec<Row>,
    /// The waits of each thread whose times are in order, the first first.
    of_threads: Groups,
    /// Of these, those that each thread ended by waking, in the order in which it did.
    of_wakers: Groups,
}

impl HostWaits {
    /// Of a host's rows, in any order.
    ///
    /// # Errors
    /// [`TooManyWaits`].
    pub fn new(host: HostId, rows: impl IntoIterator<Item = Wait>) -> Result<Self, TooManyWaits> {
        let mut waits = Self {
            host,
            threads: Vec::new(),
            numbers: HashMap::new(),
            rows: Vec::new(),
            of_threads: Groups::default(),
            of_wakers: Groups::default(),
        };
        for wait in rows {
            if waits.rows.len() >= MOST {
                return Err(TooManyWaits);
            }
            let thread = waits.number_of(wait.thread);
            let waker = wait.waker.map(|waker| waits.number_of(waker));
            waits.rows.push(Row::new(&wait, thread, waker));
        }
        waits.rows.shrink_to_fit();
        let threads = waits.threads.len();
        let of_threads = Groups::new(
            threads,
            &waits.rows,
            |row| row.is_in_order().then_some(row.thread),
            |a, b| {
                let [one, other] = [a, b].map(|at| &waits.rows[at as usize]);
                let same = || waits.wait(a).cmp(&waits.wait(b));
                one.times().cmp(&other.times()).then_with(same)
            },
        );
        let of_wakers = Groups::new(
            threads,
            &waits.rows,
            |row| row.waker().filter(|_| row.is_in_order() && row.woken_ns().is_some()),
            |a, b| {
                let woken_ns = |at: u32| waits.rows[at as usize].woken_ns();
                woken_ns(a).cmp(&woken_ns(b))
            },
        );
        (waits.of_threads, waits.of_wakers) = (of_threads, of_wakers);
        Ok(waits)
    }

    #[must_use]
    pub fn host(&self) -> HostId {
        self.host
    }

    /// All of them as they came in.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Wait> {
        self.rows.iter().map(|row| self.wide(row))
    }

    /// The place in [`HostWaits::iter`] of a thread's wait that began at a time.
    #[must_use]
    pub fn place(&self, thread: Thread, off_ns: u64) -> Option<usize> {
        let waits = self.of_thread(thread)?;
        let last = waits.began_before(off_ns.checked_add(1)?).checked_sub(1)?;
        let at = waits.places[last] as usize;
        (self.rows[at].off_ns == off_ns).then_some(at)
    }

    /// Those who wait or wake, each once.
    pub(crate) fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// Those of a thread whose times are in order, if it has any.
    pub(crate) fn of_thread(&self, thread: Thread) -> Option<ThreadWaits<'_>> {
        let places = self.of_threads.of(*self.numbers.get(&thread)?);
        (!places.is_empty()).then_some(ThreadWaits { waits: self, places })
    }

    /// The waits of each thread whose times are in order, of those that have any.
    pub(crate) fn by_thread(&self) -> impl Iterator<Item = (Thread, ThreadWaits<'_>)> {
        let threads = self.threads.iter();
        threads.filter_map(|&thread| Some((thread, self.of_thread(thread)?)))
    }

    /// The numbers of all times between two waits of one thread: see [`HostWaits::between`].
    pub(crate) fn all_between(&self) -> impl Iterator<Item = u32> {
        self.of_threads.pairs()
    }

    /// The waits before and after such a time.
    pub(crate) fn between(&self, number: u32) -> [Wait; 2] {
        self.of_threads.pair(number).map(|at| self.wait(at))
    }

    /// From when to when such a time is.
    pub(crate) fn between_ns(&self, number: u32) -> [u64; 2] {
        let [before, after] = self.of_threads.pair(number);
        [self.rows[before as usize].on_ns, self.rows[after as usize].off_ns]
    }

    fn number_of(&mut self, thread: Thread) -> u32 {
        let next = self.threads.len() as u32;
        let number = *self.numbers.entry(thread).or_insert(next);
        if number == next {
            self.threads.push(thread);
        }
        number
    }

    fn wait(&self, at: u32) -> Wait {
        self.wide(&self.rows[at as usize])
    }

    fn wide(&self, row: &Row) -> Wait {
        row.wide(self.host, &self.threads)
    }
}

/// The waits of one thread whose times are in order: the earliest first, one at least.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadWaits<'w> {
    waits: &'w HostWaits,
    places: &'w [u32],
}

impl<'w> ThreadWaits<'w> {
    /// How many of them began before a time.
    pub(crate) fn began_before(self, at_ns: u64) -> usize {
        let rows = &self.waits.rows;
        self.places.partition_point(|&at| rows[at as usize].off_ns < at_ns)
    }

    pub(crate) fn get(self, index: usize) -> Option<Wait> {
        self.places.get(index).map(|&at| self.waits.wait(at))
    }

    pub(crate) fn last(self) -> Option<Wait> {
        self.places.last().map(|&at| self.waits.wait(at))
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Wait> + 'w {
        self.places.iter().map(move |&at| self.waits.wait(at))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn thread() -> impl Strategy<Value = Thread> {
        (0_u32..4, 0_u64..2).prop_map(|(id, start_ns)| Thread { id, start_ns })
    }

    fn wait() -> impl Strategy<Value = Wait> {
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
                    Wait {
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

    fn is_in_order(wait: &Wait) -> bool {
        let is_in = |at_ns| wait.off_ns <= at_ns && at_ns <= wait.on_ns;
        wait.off_ns < wait.on_ns && wait.woken_ns.is_none_or(is_in)
    }

    proptest! {
        #[test]
        fn waits_are_as_they_came_in(rows in prop::collection::vec(wait(), 0..60)) {
            let waits = Waits::of(&rows).expect("few");
            let mut by_host = rows.clone();
            by_host.sort_by_key(|wait| wait.host);
            prop_assert_eq!(waits.iter().collect::<Vec<_>>(), by_host);
            let mut in_order: Vec<Wait> = rows.iter().copied().filter(is_in_order).collect();
            in_order.sort_unstable();
            for host in waits.hosts() {
                for &thread in host.threads() {
                    let id = ThreadId { host: host.host(), thread };
                    let is_own = |wait: &&Wait| wait.thread_id() == id;
                    let own: Vec<Wait> = in_order.iter().filter(is_own).copied().collect();
                    let found = waits.of_thread(id);
                    let found = found.into_iter().flat_map(ThreadWaits::iter);
                    prop_assert_eq!(found.collect::<Vec<_>>(), own.clone());
                    for between_ns in [[0, 5], [5, 20], [6, 6], [0, u64::MAX]] {
                        let is_its = |wait: &&Wait| {
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
                    for at_ns in [0, 5, 19, 20, u64::MAX] {
                        let place = host.place(thread, at_ns);
                        let found = place.and_then(|place| host.iter().nth(place));
                        let began = own.iter().rfind(|wait| wait.off_ns == at_ns);
                        prop_assert_eq!(found.as_ref(), began);
                    }
                }
                let between = host.all_between().map(|number| host.between(number));
                let between: Vec<[Wait; 2]> = between.collect();
                let of_host: Vec<Wait> =
                    in_order.iter().filter(|wait| wait.host == host.host()).copied().collect();
                let mut expected: Vec<[Wait; 2]> = of_host
                    .windows(2)
                    .filter(|pair| pair[0].thread == pair[1].thread)
                    .map(|pair| [pair[0], pair[1]])
                    .collect();
                let mut found = between;
                found.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
