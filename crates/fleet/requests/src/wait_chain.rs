//! Reason why a thread does not run at a time: its wait, the thread that the wait depends on, and so on.

use std::collections::HashMap;

use luc_fleet_clocks::HostId;

use crate::connections::Connections;
use crate::critical_path::{CriticalPaths, EndedBy};
use crate::host_rows::{EndId, MessageRow, SleepingThread, ThreadId, ThreadWait};

/// Maximum number of threads of a chain; a longer one is of forged rows.
const MAX_LINKS: usize = 256;

/// State of a thread at a time. Times are of its host's CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadActivity {
    Running,
    /// Waited for a processor.
    Runnable {
        since_ns: u64,
        until_ns: u64,
    },
    Waiting {
        /// `None`: before the trace, and not known.
        since_ns: Option<u64>,
        /// `None`: beyond the end of the trace.
        until_ns: Option<u64>,
    },
    NotKnown,
}

/// Reason why a thread's wait depends on another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependencyReason {
    /// The other thread sent the message that ended the wait.
    Sent,
    /// The other thread woke this one.
    Woke,
    /// The other thread has the lock, and did not release it in the trace.
    Holds,
    /// The other thread used the other end of the connection last, and nothing has come from there.
    Peer,
}

/// A thread of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainThread {
    pub thread: ThreadId,
    /// Time on the clock of this thread's host.
    pub at_ns: u64,
    pub doing: ThreadActivity,
    /// Time that names the row of its wait: [`ThreadWait::off_ns`], or [`SleepingThread::at_ns`] if the trace does not
    /// have its end.
    pub row_ns: Option<u64>,
    /// Reason why the wait depends on the next thread; `None`: this is the last one.
    pub reason: Option<DependencyReason>,
}

/// A chain of threads: each waits for the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitChain {
    /// First comes the thread that was asked for.
    pub links: Vec<ChainThread>,
    /// Index of the thread that the last one waits for, if it is in the chain.
    pub back_to: Option<usize>,
}

impl WaitChain {
    /// Whether threads wait for each other for ever: each of them has the lock that the one before waits for.
    #[must_use]
    pub fn is_deadlock(&self) -> bool {
        self.back_to.is_some_and(|first| {
            let mut circle = self.links[first..].iter();
            circle.all(|link| link.reason == Some(DependencyReason::Holds))
        })
    }
}

/// The row of a wait around a time.
#[derive(Debug, Clone, Copy)]
enum Row<'w> {
    /// A wait that ends in the trace.
    Wait(ThreadWait),
    /// A wait that was under way when the trace began or ended, without its end.
    Sleeper(&'w SleepingThread),
}

/// Thread that a wait depends on.
#[derive(Debug, Clone, Copy)]
struct DependsOn {
    thread: ThreadId,
    reason: DependencyReason,
}

/// Rows that tell why threads do not run.
#[derive(Debug)]
pub struct WaitExplainer<'p> {
    paths: &'p CriticalPaths<'p>,
    /// In the order of time.
    sleepers: HashMap<ThreadId, Vec<SleepingThread>>,
    /// By end: the thread that used the other end last.
    peers: HashMap<EndId, ThreadId>,
}

impl<'p> WaitExplainer<'p> {
    /// Collects the rows of all hosts.
    #[must_use]
    pub fn new(
        paths: &'p CriticalPaths<'p>,
        sleepers: &[SleepingThread],
        connections: &Connections,
        messages: &[MessageRow],
    ) -> Self {
        let mut of_threads: HashMap<ThreadId, Vec<SleepingThread>> = HashMap::new();
        for &row in sleepers {
            of_threads.entry(row.thread_id()).or_default().push(row);
        }
        for rows in of_threads.values_mut() {
            rows.sort_unstable_by_key(|row| row.at_ns);
        }
        let mut last: HashMap<EndId, (u64, ThreadId)> = HashMap::new();
        for row in messages {
            let used = (row.at_ns, row.thread_id());
            let known = last.entry(row.end()).or_insert(used);
            *known = used.max(*known);
        }
        let pairs = connections.pairs.iter();
        let ends = pairs.flat_map(|pair| [pair.ends, [pair.ends[1], pair.ends[0]]]);
        let peers = ends.filter_map(|[end, peer]| Some((end, last.get(&peer)?.1)));
        Self { paths, sleepers: of_threads, peers: peers.collect() }
    }

    /// Returns the threads that a thread depends on at a time.
    ///
    /// A wait that ends in the trace depends on the sender of the message that the thread then read. Without one, it
    /// depends on the thread that woke it. A wait that does not end depends on the thread that has the lock. On a
    /// connection, it depends on the thread that used the other end last.
    ///
    /// Threads of other hosts are looked up at the same moment. `away` returns a host's time at that moment; the chain
    /// ends where it is not known.
    #[must_use]
    pub fn chain(
        &self,
        thread: ThreadId,
        at_ns: u64,
        away: impl Fn(HostId) -> Option<u64>,
    ) -> WaitChain {
        let mut chain = WaitChain::default();
        let mut next = Some((thread, at_ns));
        while let Some((thread, at_ns)) = next.take() {
            let row = self.row(thread, at_ns);
            let doing = self.doing(thread, at_ns, row);
            let waits = row.filter(|_| matches!(doing, ThreadActivity::Waiting { .. }));
            let depends_on = waits.and_then(|row| self.depends_on(row));
            chain.links.push(ChainThread {
                thread,
                at_ns,
                doing,
                row_ns: waits.map(|row| match row {
                    Row::Wait(wait) => wait.off_ns,
                    Row::Sleeper(row) => row.at_ns,
                }),
                reason: depends_on.map(|depends_on| depends_on.reason),
            });
            let Some(DependsOn { thread: other, .. }) = depends_on else {
                break;
            };
            chain.back_to = chain.links.iter().position(|link| link.thread == other);
            if chain.back_to.is_some() || chain.links.len() >= MAX_LINKS {
                break;
            }
            let there_ns = if other.host == thread.host { Some(at_ns) } else { away(other.host) };
            next = there_ns.map(|at_ns| (other, at_ns));
        }
        chain
    }

    /// Returns the row of a thread's wait around a time.
    fn row(&self, thread: ThreadId, at_ns: u64) -> Option<Row<'_>> {
        if let Some(wait) = self.paths.wait_at(thread, at_ns) {
            return Some(Row::Wait(wait));
        }
        let covers = |row: &&SleepingThread| {
            let had_begun = row.since_ns.is_none_or(|since_ns| since_ns <= at_ns);
            // The recorder looks at threads shortly before the trace ends.
            let is_over = at_ns > row.at_ns && self.paths.acts_after(thread, row.at_ns);
            had_begun && !is_over
        };
        let rows = self.sleepers.get(&thread)?;
        rows.iter().find(covers).map(Row::Sleeper)
    }

    fn doing(&self, thread: ThreadId, at_ns: u64, row: Option<Row<'_>>) -> ThreadActivity {
        match row {
            Some(Row::Wait(wait)) => match wait.woken_ns {
                Some(woken_ns) if at_ns < woken_ns => ThreadActivity::Waiting {
                    since_ns: self.began_ns(&wait),
                    until_ns: Some(woken_ns),
                },
                woken_ns => ThreadActivity::Runnable {
                    since_ns: woken_ns.unwrap_or(wait.off_ns),
                    until_ns: wait.on_ns,
                },
            },
            Some(Row::Sleeper(row)) => {
                ThreadActivity::Waiting { since_ns: row.since_ns, until_ns: None }
            }
            None if self.paths.knows(thread) => ThreadActivity::Running,
            None => ThreadActivity::NotKnown,
        }
    }

    /// Returns the begin of a wait; `None`: before the trace, and not known. A wait may have been under way when the
    /// trace began. Its row starts when the recorder looked at the thread.
    fn began_ns(&self, wait: &ThreadWait) -> Option<u64> {
        let mut rows = self.sleepers.get(&wait.thread_id()).into_iter().flatten();
        let seen = rows.find(|row| row.at_ns == wait.off_ns);
        seen.map_or(Some(wait.off_ns), |row| row.since_ns)
    }

    fn depends_on(&self, row: Row<'_>) -> Option<DependsOn> {
        let (thread, reason) = match row {
            Row::Wait(wait) => match self.paths.ended_by(&wait)? {
                EndedBy::Message { sent, .. } => (sent.thread_id(), DependencyReason::Sent),
                EndedBy::Waker(waker) => (waker, DependencyReason::Woke),
            },
            Row::Sleeper(&SleepingThread { host, holder: Some(thread), .. }) => {
                (ThreadId { host, thread }, DependencyReason::Holds)
            }
            Row::Sleeper(&SleepingThread { host, connection, .. }) => {
                let end = EndId { host, connection: connection? };
                (*self.peers.get(&end)?, DependencyReason::Peer)
            }
        };
        Some(DependsOn { thread, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet_waits::FleetWaits;
    use crate::test_rows::{HERE, thread, thread_id};

    fn wait(id: u32, off_ns: u64, on_ns: u64, waker: Option<u32>) -> ThreadWait {
        crate::test_rows::wait(id, [off_ns, on_ns - 1, on_ns], waker)
    }

    fn sleeper(id: u32, at_ns: u64, since_ns: u64, holder: Option<u32>) -> SleepingThread {
        SleepingThread {
            host: HERE,
            thread: thread(id),
            at_ns,
            since_ns: Some(since_ns),
            connection: None,
            holder: holder.map(thread),
        }
    }

    fn chain(waits: &[ThreadWait], sleepers: &[SleepingThread], id: u32, at_ns: u64) -> WaitChain {
        let waits = FleetWaits::of(waits).expect("few");
        let paths = CriticalPaths::new(&waits, &[], &[]);
        let why = WaitExplainer::new(&paths, sleepers, &Connections::default(), &[]);
        why.chain(thread_id(id), at_ns, |_| None)
    }

    fn threads(chain: &WaitChain) -> Vec<(u32, Option<DependencyReason>)> {
        let link = |link: &ChainThread| (link.thread.thread.id, link.reason);
        chain.links.iter().map(link).collect()
    }

    #[test]
    fn each_waits_for_the_one_that_ended_its_wait() {
        let waits =
            [wait(1, 100, 200, Some(2)), wait(2, 50, 190, Some(3)), wait(3, 160, 170, None)];
        let found = chain(&waits, &[], 1, 150);
        let woke = Some(DependencyReason::Woke);
        assert_eq!(threads(&found), [(1, woke), (2, woke), (3, None)]);
        assert_eq!(found.links[2].doing, ThreadActivity::Running);
        assert_eq!(
            found.links[1].doing,
            ThreadActivity::Waiting { since_ns: Some(50), until_ns: Some(189) }
        );
        assert_eq!(found.back_to, None);
        // Ready to run.
        let ready = ThreadActivity::Runnable { since_ns: 199, until_ns: 200 };
        assert_eq!(chain(&waits, &[], 1, 199).links[0].doing, ready);
        assert_eq!(chain(&waits, &[], 9, 150).links[0].doing, ThreadActivity::NotKnown);
    }

    #[test]
    fn a_lock_that_is_held_beyond_the_trace_names_its_holder() {
        let waits = [wait(2, 10, 20, None)];
        let sleepers = [sleeper(1, 1000, 400, Some(2))];
        let found = chain(&waits, &sleepers, 1, 500);
        assert_eq!(threads(&found), [(1, Some(DependencyReason::Holds)), (2, None)]);
        assert_eq!(found.links[0].row_ns, Some(1000));
        assert_eq!(
            found.links[0].doing,
            ThreadActivity::Waiting { since_ns: Some(400), until_ns: None }
        );
        // The trace may end a little later.
        assert_eq!(threads(&chain(&waits, &sleepers, 1, 1001)), threads(&found));
        // Before it slept nothing is known of it.
        assert_eq!(chain(&waits, &sleepers, 1, 300).links[0].doing, ThreadActivity::NotKnown);
    }

    #[test]
    fn the_rest_of_a_sleep_began_before_the_trace() {
        let waits = [wait(1, 100, 200, Some(2))];
        let sleepers = [sleeper(1, 100, 7, Some(3))];
        let found = chain(&waits, &sleepers, 1, 150);
        assert_eq!(
            found.links[0].doing,
            ThreadActivity::Waiting { since_ns: Some(7), until_ns: Some(199) }
        );
        assert_eq!(found.links[0].row_ns, Some(100));
        // Who gave the lock away had it last.
        assert_eq!(threads(&found), [(1, Some(DependencyReason::Woke)), (2, None)]);
        assert_eq!(chain(&waits, &sleepers, 1, 250).links[0].doing, ThreadActivity::Running);
        // Before the trace only what was seen at its begin is known.
        assert_eq!(
            threads(&chain(&waits, &sleepers, 1, 50))[0],
            (1, Some(DependencyReason::Holds))
        );
    }

    #[test]
    fn threads_that_wait_for_each_other_are_a_deadlock() {
        let sleepers = [
            sleeper(5, 1000, 100, Some(1)),
            sleeper(1, 1000, 200, Some(2)),
            sleeper(2, 1000, 300, Some(1)),
        ];
        let found = chain(&[], &sleepers, 5, 900);
        assert_eq!(found.links.len(), 3);
        assert_eq!(found.back_to, Some(1));
        assert!(found.is_deadlock());
        // Who wakes each other in turn goes on.
        let waits = [wait(1, 100, 200, Some(2)), wait(2, 120, 190, Some(1))];
        let found = chain(&waits, &[], 1, 150);
        assert_eq!((found.back_to, found.is_deadlock()), (Some(0), false));
    }
}
