use luc_events::Transaction;
use luc_events::tables::JournalCommit;
use proptest::prelude::*;

use super::*;

fn commit(transaction: u32, times: [u64; 4]) -> CommitContent {
    let [start_ns, flushing_ns, logging_ns, end_ns] = times;
    CommitContent {
        row: JournalCommit {
            transaction: Transaction(transaction),
            start_ns,
            locking_ns: start_ns,
            flushing_ns,
            logging_ns,
            end_ns,
            ..JournalCommit::default()
        },
        bytes: Vec::new(),
        data: Vec::new(),
        handles: Vec::new(),
        served: 0,
        blocked_writes: 0,
    }
}

fn split(span: &CallSpan<'_>, history: &VecDeque<CommitContent>) -> CallSplit {
    let mut split = CallSplit::default();
    split.fill(span, history);
    split
}

fn piece(off_ns: u64, woken_ns: u64, on_ns: u64, cause: WaitCause) -> SplitWait {
    SplitWait { off_ns, woken_ns, on_ns, cause, waker: Pid(7) }
}

#[test]
fn a_wait_over_two_commits_is_told_apart() {
    let history = [commit(1, [50, 60, 70, 200]), commit(2, [220, 230, 250, 400])].into();
    let waits = [
        piece(110, 140, 145, WaitCause::DataWriteback),
        piece(150, 410, 430, WaitCause::CommitWait),
    ];
    let span = CallSpan {
        enter_ns: 100,
        exit_ns: 440,
        thread: Pid(1),
        waits: &waits,
        commits: CallCommits { first: 0, own: Some(1) },
    };
    let split = split(&span, &history);
    let expected = [
        (CallTimePart::DataWriteback, 30),
        (CallTimePart::Predecessor, 50),
        (CallTimePart::Start, 20),
        (CallTimePart::Locking, 10),
        (CallTimePart::Flushing, 20),
        (CallTimePart::Logging, 150),
        (CallTimePart::Done, 10),
        (CallTimePart::Runnable, 25),
        (CallTimePart::Running, 25),
    ];
    assert_eq!(split.parts.iter().collect::<Vec<_>>(), expected);
    assert_eq!(split.commits, [(0, 50), (1, 180)]);
    assert_eq!(split.pieces.iter().map(|&(_, ns)| ns).sum::<u64>(), 340);
    assert_eq!(split.pieces[1], (CallTimePart::DataWriteback, 30));
}

#[test]
fn a_write_delay_names_its_commit() {
    let history = [commit(1, [50, 60, 70, 200])].into();
    let waits = [piece(110, 190, 190, WaitCause::ShadowBuffer)];
    let span = CallSpan {
        enter_ns: 100,
        exit_ns: 195,
        thread: Pid(1),
        waits: &waits,
        commits: CallCommits { first: 0, own: None },
    };
    let split = split(&span, &history);
    assert_eq!(split.parts.get(CallTimePart::WriteDelay), 80);
    assert_eq!(split.commits, [(0, 80)]);
}

#[test]
fn a_fast_commit_of_another_is_a_predecessor() {
    let mut theirs = commit(5, [100, 0, 0, 200]);
    let mut mine = commit(5, [200, 0, 0, 300]);
    (theirs.row.kind, mine.row.kind) = (CommitKind::Fast, CommitKind::Fast);
    (theirs.row.asked_by, mine.row.asked_by) = (Pid(2), Pid(1));
    let waits = [piece(150, 300, 300, WaitCause::FastCommit)];
    let span = CallSpan {
        enter_ns: 140,
        exit_ns: 310,
        thread: Pid(1),
        waits: &waits,
        commits: CallCommits { first: 0, own: None },
    };
    let split = split(&span, &[theirs, mine].into());
    assert_eq!(split.parts.get(CallTimePart::Predecessor), 50);
    assert_eq!(split.parts.get(CallTimePart::FastCommit), 100);
}

prop_compose! {
    /// Waits in order, their causes any.
    fn waits()(
        steps in prop::collection::vec((0u64..50, 0u64..100, 0u64..20, 0..WaitCause::ALL.len()), 0..12),
        begin in 0u64..300,
    ) -> Vec<SplitWait> {
        let mut now = begin;
        steps
            .into_iter()
            .map(|(gap, blocked, runnable, cause)| {
                let off = now + gap;
                now = off + blocked + runnable;
                piece(off, off + blocked, now, WaitCause::ALL[cause])
            })
            .collect()
    }
}

prop_compose! {
    /// Commits in order, some phases unknown.
    fn commits()(
        steps in prop::collection::vec((0u64..40, 0u64..20, 0u64..20, 0u64..80, any::<bool>()), 0..8),
    ) -> VecDeque<CommitContent> {
        let mut now = 50;
        let mut tid = 0;
        steps
            .into_iter()
            .map(|(gap, locking, flushing, logging, known)| {
                let start = now + gap;
                let (flush, log) = (start + locking, start + locking + flushing);
                now = log + logging;
                tid += 1;
                let phases = if known { (flush, log) } else { (0, 0) };
                commit(tid, [start, phases.0, phases.1, now])
            })
            .collect()
    }
}

proptest! {
    /// For any trace the parts sum to the measured time.
    #[test]
    fn parts_sum_to_the_time(
        waits in waits(),
        history in commits(),
        enter_ns in 0u64..400,
        length in 0u64..600,
        own in prop::option::of(0usize..8),
        first in 0usize..8,
    ) {
        let exit_ns = enter_ns + length;
        let span = CallSpan { enter_ns, exit_ns, thread: Pid(1), waits: &waits, commits: CallCommits { first, own } };
        let split = split(&span, &history);
        prop_assert_eq!(split.parts.sum(), length);
        let waited: u64 = split.commits.iter().map(|&(_, ns)| ns).sum();
        prop_assert!(waited <= length);
    }
}
