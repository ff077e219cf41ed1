//! Waits of one trace in little memory: they are most of a trace.

mod compact_wait;
mod rows_by_thread;

use luc_events::WaitCause;

use crate::graph_ids::TraceThread;
use crate::graph_rows::GraphWait;
use crate::time_span::TimeSpan;
use compact_wait::CompactWait;
use rows_by_thread::{RowIndex, RowsByThread};

/// Maximum number of waits: they have indices of 32 bits.
const MAX_WAITS: usize = (u32::MAX / 2) as usize;

/// Maximum number of waits of other causes that are looked at. Of a turn with more the end is unknown.
const MAX_TURN_WAITS: usize = 1_000;

/// Error: a trace has more waits than have indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {MAX_WAITS} waits of one host are too many: take less at once, by time")]
pub struct TooManyWaits;

/// The waits of one trace. Those whose times are not in order are left out.
#[derive(Debug, Clone, Default)]
pub struct WaitRows {
    rows: Vec<CompactWait>,
    /// Waits of each thread, the earliest first.
    of_threads: RowsByThread,
    /// Waits by the thread that ended them, in the order of wake-ups.
    of_wakers: RowsByThread,
}

/// Index of a run: the time between two waits of a thread that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunIndex(u32);

/// A time in which a thread was on a processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadRun {
    pub(crate) thread: TraceThread,
    /// Processor that the thread got; `None`: unknown.
    pub(crate) processor: Option<u32>,
    pub(crate) span: TimeSpan,
}

impl WaitRows {
    /// Collects rows in any order. `threads` is the number of threads: rows of others are left out.
    ///
    /// # Errors
    /// [`TooManyWaits`].
    pub fn new(
        threads: usize,
        waits: impl IntoIterator<Item = GraphWait>,
    ) -> Result<Self, TooManyWaits> {
        let is_known = |thread: TraceThread| (thread.0 as usize) < threads;
        let mut rows: Vec<CompactWait> = Vec::new();
        for wait in waits.into_iter().filter(|wait| is_known(wait.thread) && is_in_order(wait)) {
            if rows.len() >= MAX_WAITS {
                return Err(TooManyWaits);
            }
            let waker = wait.waker.filter(|&waker| is_known(waker));
            rows.push(CompactWait::new(&GraphWait { waker, ..wait }));
        }
        rows.shrink_to_fit();
        let of_threads = RowsByThread::new(
            threads,
            &rows,
            |row| Some(row.thread()),
            |a, b| {
                let (a, b) = (&rows[a.0 as usize], &rows[b.0 as usize]);
                a.off_ns.cmp(&b.off_ns).then_with(|| a.expand().cmp(&b.expand()))
            },
        );
        let of_wakers = RowsByThread::new(
            threads,
            &rows,
            |row| row.waker().filter(|_| row.woken_ns().is_some()),
            |a, b| rows[a.0 as usize].woken_ns().cmp(&rows[b.0 as usize].woken_ns()),
        );
        Ok(Self { rows, of_threads, of_wakers })
    }

    /// Returns the waits of each thread in turn, the earliest first.
    pub fn iter(&self) -> impl Iterator<Item = GraphWait> {
        self.of_threads.all().iter().map(move |&row| self.wait(row))
    }

    /// Returns the last wait of a thread that began before a time.
    #[must_use]
    pub fn last_before(&self, thread: TraceThread, at_ns: u64) -> Option<GraphWait> {
        let rows = self.of_threads.of(thread);
        let next = rows.partition_point(|&row| self.row(row).off_ns < at_ns);
        rows.get(next.checked_sub(1)?).map(|&row| self.wait(row))
    }

    /// Returns the begin of a thread's first wait of some causes that began after a time; `None` if it had none.
    #[must_use]
    pub fn next_off_ns(
        &self,
        thread: TraceThread,
        after_ns: u64,
        is_meant: impl Fn(WaitCause) -> bool,
    ) -> Option<u64> {
        let rows = self.of_threads.of(thread);
        let next = rows.partition_point(|&row| self.row(row).off_ns <= after_ns);
        let mut later = rows[next..].iter().take(MAX_TURN_WAITS).map(|&row| self.wait(row));
        later.find(|wait| is_meant(wait.cause)).map(|wait| wait.off_ns)
    }

    /// Returns the waits that a thread ended from one time to another, both included, in the order of wake-ups.
    pub fn woken_by(
        &self,
        waker: TraceThread,
        [from_ns, to_ns]: [u64; 2],
    ) -> impl DoubleEndedIterator<Item = GraphWait> {
        let rows = self.of_wakers.of(waker);
        let first = rows.partition_point(|&row| self.row(row).woken_ns() < Some(from_ns));
        let end = rows.partition_point(|&row| self.row(row).woken_ns() <= Some(to_ns)).max(first);
        rows[first..end].iter().map(move |&row| self.wait(row))
    }

    /// Returns all runs, those of each thread in turn.
    pub(crate) fn runs(&self) -> impl Iterator<Item = RunIndex> {
        let pairs = self.of_threads.all().windows(2);
        let is_run = |pair: &[RowIndex]| self.row(pair[0]).thread() == self.row(pair[1]).thread();
        (0..).map(RunIndex).zip(pairs).filter(move |&(_, pair)| is_run(pair)).map(|(run, _)| run)
    }

    pub(crate) fn run(&self, run: RunIndex) -> ThreadRun {
        let [before, after] = [0, 1].map(|more| self.of_threads.all()[run.0 as usize + more]);
        let before = self.wait(before);
        ThreadRun {
            thread: before.thread,
            processor: before.processor,
            span: TimeSpan::new(before.on_ns, self.row(after).off_ns),
        }
    }

    fn row(&self, row: RowIndex) -> &CompactWait {
        &self.rows[row.0 as usize]
    }

    fn wait(&self, row: RowIndex) -> GraphWait {
        self.row(row).expand()
    }
}

/// Returns whether a wait took time, and the wake-up was meanwhile.
fn is_in_order(wait: &GraphWait) -> bool {
    let is_in = |at_ns: u64| wait.off_ns <= at_ns && at_ns <= wait.on_ns;
    wait.off_ns < wait.on_ns && wait.woken_ns.is_none_or(is_in)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::graph_rows::WaitEnd;

    const THREADS: u32 = 4;

    fn thread() -> impl Strategy<Value = TraceThread> {
        (0..THREADS + 2).prop_map(TraceThread)
    }

    fn wait() -> impl Strategy<Value = GraphWait> {
        let time = || prop_oneof![0_u64..20, Just(u64::MAX)];
        let waker = prop::option::of(thread());
        let processor = prop::option::of(prop_oneof![0_u32..3, Just(u32::MAX - 1)]);
        let times = (time(), prop::option::of(time()), time());
        (thread(), times, waker, processor).prop_map(|(thread, times, waker, processor)| {
            GraphWait {
                thread,
                off_ns: times.0,
                woken_ns: times.1,
                on_ns: times.2,
                waker,
                end: WaitEnd::Thread,
                cause: WaitCause::Futex,
                processor,
            }
        })
    }

    proptest! {
        #[test]
        fn rows_come_out_as_they_went_in(rows in prop::collection::vec(wait(), 0..60)) {
            let waits = WaitRows::new(THREADS as usize, rows.iter().copied()).expect("few");
            let known = |thread: TraceThread| thread.0 < THREADS;
            let mut expected: Vec<GraphWait> = rows
                .iter()
                .filter(|wait| known(wait.thread) && is_in_order(wait))
                .map(|wait| GraphWait { waker: wait.waker.filter(|&one| known(one)), ..*wait })
                .collect();
            expected.sort_unstable();
            prop_assert_eq!(waits.iter().collect::<Vec<_>>(), expected.clone());
            for thread in (0..THREADS + 2).map(TraceThread) {
                for at_ns in [0, 7, 20, u64::MAX] {
                    let of_thread = || expected.iter().filter(|wait| wait.thread == thread);
                    let last = of_thread().rfind(|wait| wait.off_ns < at_ns);
                    prop_assert_eq!(waits.last_before(thread, at_ns), last.copied());
                    let next = of_thread().map(|wait| wait.off_ns).find(|&off_ns| off_ns > at_ns);
                    prop_assert_eq!(waits.next_off_ns(thread, at_ns, |_| true), next);
                    let woken = waits.woken_by(thread, [at_ns, 20]).count();
                    let by_thread = expected.iter().filter(|wait| wait.waker == Some(thread));
                    let since = by_thread.filter(|wait| {
                        wait.woken_ns.is_some_and(|woken_ns| (at_ns..=20).contains(&woken_ns))
                    });
                    prop_assert_eq!(woken, since.count());
                }
            }
        }
    }
}
