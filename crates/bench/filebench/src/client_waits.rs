//! Waits of clients for each other: the semaphores of `semblock` and `sempost`, and `block` and `wakeup`.
//!
//! All states are under one lock. A post to many semaphores takes it once. A client that begins to wait can see that
//! all others wait too, and none is left to wake another. A wait reads the clock ten times a second, so it ends with
//! the run in any case.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use luc_workload::workers::{WorkloadClient, now_ns};

/// The longest sleep without a look at the end of the run, ns.
const MAX_SLEEP_NS: u64 = 100_000_000;

/// Why a wait did not end as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitFailure {
    Over,
    Deadlock,
}

/// State of all waits of clients for each other.
#[derive(Debug)]
pub(super) struct ClientWaits {
    state: Mutex<WaitState>,
    /// Condition variables per point: for its owner, and for those who post to it.
    sleepers: Vec<[Condvar; 2]>,
    quirks: WaitQuirks,
}

/// Quirks of Filebench that the default does not have.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitQuirks {
    /// Whether a wakeup without a waiter is lost.
    pub(super) forgetful: bool,
    /// Whether clients that all wait stay idle until the end of the run.
    pub(super) idle: bool,
}

#[derive(Debug)]
struct WaitState {
    points: Vec<Point>,
    /// Needs that the clients wait for.
    needs: Vec<Option<Need>>,
    waiting: usize,
    /// Clients that have not ended.
    active: usize,
}

#[derive(Debug, Clone)]
struct Point {
    /// Posts that may still be made without the owner (`highwater`).
    credit: u64,
    posts: u64,
    wakeups: u64,
    /// Number of wakeups that the owner has seen.
    seen: u64,
}

#[derive(Debug, Clone, Copy)]
enum Need {
    Posts(usize, u64),
    Credit(usize, u64),
    Wakeup(usize),
}

impl WaitState {
    fn has(&self, need: Need) -> bool {
        match need {
            Need::Posts(point, count) => self.points[point].posts >= count,
            Need::Credit(point, count) => self.points[point].credit >= count,
            Need::Wakeup(point) => self.points[point].wakeups > self.points[point].seen,
        }
    }
}

impl ClientWaits {
    /// Makes points with their first credit, for `clients` clients.
    pub(super) fn new(credits: &[u64], clients: usize, quirks: WaitQuirks) -> Self {
        let point = |&credit: &u64| Point { credit, posts: 0, wakeups: 0, seen: 0 };
        Self {
            state: Mutex::new(WaitState {
                points: credits.iter().map(point).collect(),
                needs: vec![None; clients],
                waiting: 0,
                active: clients,
            }),
            sleepers: credits.iter().map(|_| Default::default()).collect(),
            quirks,
        }
    }

    /// Notes that a client has ended and wakes nobody any more. Returns the number of clients left.
    pub(super) fn leave(&self) -> usize {
        let mut state = self.lock();
        state.active -= 1;
        state.active
    }

    /// `semblock`: lets `count` more posts come, and takes `count` of them.
    pub(super) fn take(
        &self,
        client: &WorkloadClient<'_>,
        point: usize,
        count: u64,
    ) -> Result<(), WaitFailure> {
        let mut state = self.lock();
        state.points[point].credit = state.points[point].credit.saturating_add(count);
        self.sleepers[point][1].notify_all();
        let mut state = self.wait(state, client, Need::Posts(point, count))?;
        state.points[point].posts -= count;
        Ok(())
    }

    /// `sempost`: posts `count` to every one of `points`; if `blocking`, waits for their credit.
    pub(super) fn post(
        &self,
        client: &WorkloadClient<'_>,
        points: &[Range<usize>],
        count: u64,
        blocking: bool,
    ) -> Result<(), WaitFailure> {
        let mut state = self.lock();
        for point in points.iter().cloned().flatten() {
            if blocking {
                state = self.wait(state, client, Need::Credit(point, count))?;
                state.points[point].credit -= count;
            }
            let posts = state.points[point].posts;
            state.points[point].posts = posts.saturating_add(count);
            self.sleepers[point][0].notify_one();
        }
        Ok(())
    }

    /// `block`: waits for a wakeup; one that came since the last is remembered, unless as in Filebench.
    pub(super) fn block(
        &self,
        client: &WorkloadClient<'_>,
        point: usize,
    ) -> Result<(), WaitFailure> {
        let mut state = self.lock();
        if self.quirks.forgetful {
            state.points[point].seen = state.points[point].wakeups;
        }
        let mut state = self.wait(state, client, Need::Wakeup(point))?;
        state.points[point].seen = state.points[point].wakeups;
        Ok(())
    }

    /// Performs `wakeup`: wakes the clients that wait at `points`.
    pub(super) fn wake(&self, points: &[Range<usize>]) {
        let mut state = self.lock();
        for point in points.iter().cloned().flatten() {
            state.points[point].wakeups += 1;
            self.sleepers[point][0].notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until the need of `client` is met.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, WaitState>,
        client: &WorkloadClient<'_>,
        need: Need,
    ) -> Result<MutexGuard<'a, WaitState>, WaitFailure> {
        let sleeper = match need {
            Need::Posts(point, _) | Need::Wakeup(point) => &self.sleepers[point][0],
            Need::Credit(point, _) => &self.sleepers[point][1],
        };
        if state.has(need) {
            return Ok(state);
        }
        state.needs[client.index] = Some(need);
        state.waiting += 1;
        let broken = loop {
            if state.has(need) {
                break None;
            }
            // Read under the lock: a client that left at the end of the run did so before.
            if !client.running(now_ns()) {
                break Some(WaitFailure::Over);
            }
            let stuck = !self.quirks.idle
                && state.waiting == state.active
                && !state.needs.iter().flatten().any(|&need| state.has(need));
            if stuck {
                break Some(WaitFailure::Deadlock);
            }
            let left = client.left_ns(now_ns()).clamp(1, MAX_SLEEP_NS);
            state = sleeper
                .wait_timeout(state, Duration::from_nanos(left))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        };
        state.needs[client.index] = None;
        state.waiting -= 1;
        broken.map_or(Ok(state), Err)
    }
}
