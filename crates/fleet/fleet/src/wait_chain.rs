//! Reason why a thread does not run at a time: its wait, the thread that it waits for, and so on.

use luc_events::WaitCause;
use luc_fleet_clocks::HostId;
use luc_fleet_requests::{EndId, SleepingThread, ThreadId};
use luc_waits::{GraphWait, WaitEnd};

use crate::explain::FleetRequests;

/// Maximum number of threads of a chain; a longer one is of forged rows.
const MAX_LINKS: usize = 256;

/// State of a thread at a time. Times are of its host's CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadActivity {
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
pub(crate) enum DependencyReason {
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
pub(crate) struct ChainThread {
    pub(crate) thread: ThreadId,
    /// Time on the clock of this thread's host.
    pub(crate) at_ns: u64,
    pub(crate) doing: ThreadActivity,
    /// Cause of its wait.
    pub(crate) cause: Option<WaitCause>,
    /// Begin of its wait.
    pub(crate) off_ns: u64,
    /// Reason why the wait depends on the next thread; `None`: this is the last one.
    pub(crate) reason: Option<DependencyReason>,
}

/// A chain of threads: each waits for the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WaitChain {
    /// First comes the thread that was asked for.
    pub(crate) links: Vec<ChainThread>,
    /// Index of the thread that the last one waits for, if it is in the chain.
    pub(crate) back_to: Option<usize>,
}

/// Thread that a wait depends on.
#[derive(Debug, Clone, Copy)]
struct DependsOn {
    thread: ThreadId,
    reason: DependencyReason,
}

impl WaitChain {
    /// Follows the waits from a thread. Threads of other hosts are looked up at the same moment. `away` returns a
    /// host's time at that moment; the chain ends where it is not known.
    pub(crate) fn new(
        found: &FleetRequests<'_>,
        thread: ThreadId,
        at_ns: u64,
        away: impl Fn(HostId) -> Option<u64>,
    ) -> Self {
        let mut chain = Self::default();
        let mut next = Some((thread, at_ns));
        while let Some((thread, at_ns)) = next.take() {
            let wait = found.graph.wait_at(thread, at_ns);
            let doing = doing(found, thread, at_ns, wait.as_ref());
            let wait = wait.filter(|_| matches!(doing, ThreadActivity::Waiting { .. }));
            let depends_on = wait.and_then(|wait| depends_on(found, thread, &wait));
            chain.links.push(ChainThread {
                thread,
                at_ns,
                doing,
                cause: wait.map(|wait| wait.cause),
                off_ns: wait.map_or(at_ns, |wait| wait.off_ns),
                reason: depends_on.map(|depends_on| depends_on.reason),
            });
            let Some(DependsOn { thread: other, .. }) = depends_on else {
                break;
            };
            chain.back_to = chain.links.iter().position(|link| link.thread == other);
            if chain.back_to.is_some() || chain.links.len() >= MAX_LINKS {
                break;
            }
            let at_ns = if other.host == thread.host { Some(at_ns) } else { away(other.host) };
            next = at_ns.map(|at_ns| (other, at_ns));
            if next.is_none()
                && let Some(last) = chain.links.last_mut()
            {
                last.reason = None;
            }
        }
        chain
    }

    /// Whether threads wait for each other for ever: each of them has the lock that the one before waits for.
    pub(crate) fn is_deadlock(&self) -> bool {
        self.back_to.is_some_and(|first| {
            let mut circle = self.links[first..].iter();
            circle.all(|link| link.reason == Some(DependencyReason::Holds))
        })
    }
}

fn doing(
    found: &FleetRequests<'_>,
    thread: ThreadId,
    at_ns: u64,
    wait: Option<&GraphWait>,
) -> ThreadActivity {
    let Some(wait) = wait else {
        let is_known = found.graph.is_recorded(thread);
        return if is_known { ThreadActivity::Running } else { ThreadActivity::NotKnown };
    };
    match wait.woken_ns {
        Some(woken_ns) if at_ns < woken_ns || wait.end == WaitEnd::Unfinished => {
            let since_ns = match sleeper(found, thread, wait) {
                Some(row) => row.since_ns,
                None => Some(wait.off_ns),
            };
            let until_ns = (wait.end != WaitEnd::Unfinished).then_some(woken_ns);
            ThreadActivity::Waiting { since_ns, until_ns }
        }
        woken_ns => ThreadActivity::Runnable {
            since_ns: woken_ns.unwrap_or(wait.off_ns),
            until_ns: wait.on_ns,
        },
    }
}

/// Returns the row of a sleep that was seen when the trace began or ended.
fn sleeper<'f>(
    found: &FleetRequests<'f>,
    thread: ThreadId,
    wait: &GraphWait,
) -> Option<&'f SleepingThread> {
    let begin_ns = found.joined.host(thread.host).trace.start_ns;
    let is_rest = |row: &SleepingThread| {
        let since_ns = row.since_ns.unwrap_or(0).max(begin_ns);
        let is_cut = wait.end == WaitEnd::Unfinished && since_ns == wait.off_ns;
        row.at_ns == wait.off_ns || is_cut
    };
    let mut rows = found.joined.rows.sleepers.iter().rev();
    rows.find(|row| row.thread_id() == thread && is_rest(row))
}

/// Finds the thread that a wait depends on. One that the end of the trace cuts depends on the thread that has the
/// lock; on a connection, on the thread that used the other end last.
fn depends_on(found: &FleetRequests<'_>, thread: ThreadId, wait: &GraphWait) -> Option<DependsOn> {
    if wait.end != WaitEnd::Unfinished {
        let (thread, is_sender) = found.graph.waited_for(thread, wait)?;
        let reason = if is_sender { DependencyReason::Sent } else { DependencyReason::Woke };
        return Some(DependsOn { thread, reason });
    }
    let row = sleeper(found, thread, wait)?;
    let host = thread.host;
    if let Some(thread) = row.holder {
        let thread = ThreadId { host, thread };
        return Some(DependsOn { thread, reason: DependencyReason::Holds });
    }
    let end = EndId { host, connection: row.connection? };
    let pairs = found.joined.connections.pairs.iter();
    let mut peers = pairs.filter_map(|pair| match pair.ends {
        [one, peer] if one == end => Some(peer),
        [peer, one] if one == end => Some(peer),
        _ => None,
    });
    let peer = peers.next()?;
    let of_peer = found.joined.rows.messages.iter().filter(|row| row.end() == peer);
    let last = of_peer.max_by_key(|row| row.at_ns)?;
    Some(DependsOn { thread: last.thread_id(), reason: DependencyReason::Peer })
}
