//! Roots while rows come in: the same as those of the whole, as far as rows are kept.

use luc_events::WaitCause;
use luc_waits::{
    GraphThread, GraphWait, LabelIndex, OneClock, RollingRoots, RootKind, RootSums, ThreadFacts,
    TimeSpan, TraceIndex, TraceRows, TraceThread, UnknownReason, WaitEnd, WaitGraph, WaitLabels,
};

use crate::story::MS;

const WRITER: TraceThread = TraceThread(0);
const WAITER: TraceThread = TraceThread(1);
const SECOND_MS: u64 = 1_000;

fn facts() -> Vec<ThreadFacts> {
    let label: LabelIndex = WaitLabels::default().index("any");
    let facts = ThreadFacts {
        process: 1,
        service: label,
        name: label,
        creator: None,
        started_ns: None,
        ended_ns: None,
        is_recorded: true,
    };
    vec![facts; 2]
}

fn wait(thread: TraceThread, cause: WaitCause, off: u64, woken: u64) -> GraphWait {
    GraphWait {
        thread,
        off_ns: off * MS,
        woken_ns: Some(woken * MS),
        on_ns: woken * MS,
        waker: (thread == WAITER).then_some(WRITER),
        end: WaitEnd::NotKnown,
        cause,
        processor: None,
    }
}

fn whole(wait: &GraphWait) -> TimeSpan {
    TimeSpan::new(wait.off_ns, wait.on_ns)
}

#[test]
fn answers_of_seconds_sum_to_that_of_the_whole() {
    let mut rows = TraceRows { threads: facts(), ..TraceRows::default() };
    let mut rolling = RollingRoots::new(0);
    let mut sums = RootSums::default();
    for turn in 0..300 {
        // Waits over a second's end are in both.
        let at = 100 * turn;
        let of_writer = wait(WRITER, WaitCause::Flush, at + 35, at + 95);
        let of_waiter = wait(WAITER, WaitCause::Futex, at + 40, at + 102);
        rows.waits.extend([of_writer, of_waiter]);
        rolling.add_wait(of_writer);
        rolling.add_wait(of_waiter);
        rolling.ask(WAITER, whole(&of_waiter));
        if rolling.is_due() {
            rolling.answer(&facts(), true, |_, found| sums.add(found)).expect("few");
            assert!(rolling.is_unasked() && !rolling.is_due());
        }
    }
    rolling.answer(&facts(), true, |_, found| sums.add(found)).expect("few");
    let waits: Vec<GraphWait> =
        rows.waits.iter().copied().filter(|wait| wait.thread == WAITER).collect();
    let graph = WaitGraph::new(vec![rows], Vec::new(), WaitLabels::default(), Box::new(OneClock));
    let graph = graph.expect("few");
    let mut expected = RootSums::default();
    for wait in &waits {
        let asked = GraphThread { trace: TraceIndex(0), thread: WAITER };
        expected.add(&graph.roots_of(asked, whole(wait)));
    }
    assert_eq!(sums, expected);
    assert_eq!(sums.sum_of(|kind| kind == RootKind::Device), 300 * 55 * MS);
}

#[test]
fn what_a_waker_did_before_rows_are_kept_is_unknown() {
    let mut rolling = RollingRoots::new(0);
    rolling.add_wait(wait(WRITER, WaitCause::Flush, 0, 40 * SECOND_MS));
    rolling.add_wait(wait(WRITER, WaitCause::Sleep, 40 * SECOND_MS, 60 * SECOND_MS));
    rolling.forget();
    let of_waiter = wait(WAITER, WaitCause::Futex, 0, 60 * SECOND_MS);
    rolling.add_wait(of_waiter);
    rolling.ask(WAITER, whole(&of_waiter));
    let mut sums = RootSums::default();
    rolling.answer(&facts(), true, |_, found| sums.add(found)).expect("few");
    let of = |is: fn(RootKind) -> bool| sums.sum_of(is) / MS / SECOND_MS;
    assert_eq!(of(|kind| kind == RootKind::Timer), 10);
    assert_eq!(of(|kind| kind == RootKind::Unknown(UnknownReason::Forgotten)), 50);
}

#[test]
fn waits_that_come_fast_are_answered_before_they_are_forgotten() {
    // The writer and the waiter take turns of 1 us: seconds have more waits than are kept.
    const TURNS: u64 = 300_000;
    let mut rolling = RollingRoots::new(0);
    let mut sums = RootSums::default();
    for turn in 0..TURNS {
        let [off_ns, on_ns] = [turn, turn + 1].map(|turn| turn * 1_000);
        let times = |wait: GraphWait| GraphWait { off_ns, woken_ns: Some(on_ns), on_ns, ..wait };
        rolling.add_wait(times(wait(WRITER, WaitCause::Flush, 0, 0)));
        let of_waiter = times(wait(WAITER, WaitCause::Futex, 0, 0));
        rolling.add_wait(of_waiter);
        rolling.ask(WAITER, whole(&of_waiter));
        if rolling.is_due() {
            rolling.answer(&facts(), true, |_, found| sums.add(found)).expect("few");
        }
    }
    rolling.answer(&facts(), true, |_, found| sums.add(found)).expect("few");
    assert_eq!(sums.sum_of(|kind| kind == RootKind::Device), TURNS * 1_000);
}
