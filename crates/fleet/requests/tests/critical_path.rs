//! Critical paths of small stories whose truth is written down.

use luc_fleet_clocks::{Bounds, HostEvent, HostId, ReferenceTime};
use luc_fleet_requests::{
    ByteDirection, CriticalPathPart, CriticalPaths, EarlierWork, EndId, FleetWaits, MessageEdge,
    MessageRow, MessageSide, PathPartKind, ThreadId, ThreadIdentity, ThreadWait,
};
use proptest::prelude::*;

const FRONT: u32 = 0;
const BACK: u32 = 1;
/// The back end's clock less the front end's, ns.
const OFFSET_NS: u64 = 1_000_000;

fn thread(id: u32) -> ThreadIdentity {
    ThreadIdentity { id, start_ns: 0 }
}

fn of(host: u32, id: u32) -> ThreadId {
    ThreadId { host: HostId(host), thread: thread(id) }
}

fn side(host: u32, id: u32, at_ns: u64) -> MessageSide {
    MessageSide { host: HostId(host), thread: thread(id), process: 1, at_ns }
}

fn wait(host: u32, id: u32, times: (u64, u64, u64), waker: Option<u32>) -> ThreadWait {
    ThreadWait {
        host: HostId(host),
        thread: thread(id),
        off_ns: times.0,
        woken_ns: Some(times.1),
        on_ns: times.2,
        waker: waker.map(thread),
        may_be_input: true,
        may_be_hand_over: true,
        processor: None,
    }
}

/// Returns both rows and the edge of a message.
fn message(
    sent: MessageSide,
    received: MessageSide,
    first_byte: u64,
) -> ([MessageRow; 2], MessageEdge) {
    let row = |side: MessageSide, way| MessageRow {
        host: side.host,
        at_ns: side.at_ns,
        thread: side.thread,
        process: side.process,
        connection: 1,
        way,
        first_byte,
        bytes: 10,
        token: None,
    };
    let end = |side: MessageSide| EndId { host: side.host, connection: 1 };
    let edge =
        MessageEdge { from: end(sent), to: end(received), first_byte, bytes: 10, sent, received };
    ([row(sent, ByteDirection::Sent), row(received, ByteDirection::Received)], edge)
}

/// Returns the back end's times on the front end's clock, to 300 ns.
fn place(event: HostEvent) -> Option<ReferenceTime> {
    let at_ns = event.at_ns - OFFSET_NS as i64;
    Some(ReferenceTime {
        at_ns: Some(at_ns),
        bounds: Bounds::Both { low_ns: at_ns - 300, high_ns: at_ns + 300 },
    })
}

/// The front end's thread 1 gives a request to worker 2, which asks thread 9 of the back end.
fn story() -> (Vec<ThreadWait>, Vec<MessageRow>, Vec<MessageEdge>) {
    let waits = vec![
        // The worker waits for work until thread 1 wakes it.
        wait(FRONT, 2, (50, 2_000, 2_100), Some(1)),
        // Thread 1 waits for the worker.
        wait(FRONT, 1, (2_500, 40_000, 40_700), Some(2)),
        // The worker waits for the back end; the recorder has the name of an interrupted thread.
        wait(FRONT, 2, (4_000, 38_000, 38_200), Some(77)),
        // The back end waits for the request, and then for a lock that thread 8 holds.
        wait(BACK, 9, (OFFSET_NS + 10, OFFSET_NS + 9_000, OFFSET_NS + 9_400), None),
        wait(BACK, 9, (OFFSET_NS + 12_000, OFFSET_NS + 30_000, OFFSET_NS + 30_500), Some(8)),
    ];
    let asks = message(side(FRONT, 2, 3_900), side(BACK, 9, OFFSET_NS + 9_500), 1);
    let answers = message(side(BACK, 9, OFFSET_NS + 33_000), side(FRONT, 2, 38_300), 1);
    let messages = [asks.0, answers.0].concat();
    (waits, messages, vec![asks.1, answers.1])
}

#[test]
fn a_path_goes_through_wakers_and_messages() {
    let (waits, messages, edges) = story();
    let waits = FleetWaits::of(&waits).expect("few");
    let paths = CriticalPaths::new(&waits, &messages, &edges);
    let path = paths.critical(&side(FRONT, 1, 1_000), &side(FRONT, 1, 42_000), place);
    let found = &path.parts;
    let network = |from, host, error_ns| PathPartKind::Network {
        from,
        to: EndId { host: HostId(host), connection: 1 },
        error_ns: Some(error_ns),
    };
    let plain: Vec<(ThreadId, PathPartKind, u64, u64)> =
        found.iter().map(|part| (part.thread, part.kind, part.begin_ns, part.end_ns)).collect();
    assert_eq!(
        plain,
        [
            (of(FRONT, 1), PathPartKind::Running, 1_000, 2_500),
            (of(FRONT, 2), PathPartKind::Running, 2_500, 4_000),
            (of(BACK, 9), network(of(FRONT, 2), BACK, 300), 4_000, 9_000),
            (of(BACK, 9), PathPartKind::Runnable { processor: None }, 9_000, 9_400),
            (of(BACK, 9), PathPartKind::Running, 9_400, 12_000),
            // Thread 8 held the lock all the time; what it did before is not its concern.
            (of(BACK, 8), PathPartKind::Running, 12_000, 30_000),
            (of(BACK, 9), PathPartKind::Runnable { processor: None }, 30_000, 30_500),
            (of(BACK, 9), PathPartKind::Running, 30_500, 33_000),
            (of(FRONT, 2), network(of(BACK, 9), FRONT, 300), 33_000, 38_000),
            (of(FRONT, 2), PathPartKind::Runnable { processor: None }, 38_000, 38_200),
            (of(FRONT, 2), PathPartKind::Running, 38_200, 40_000),
            (of(FRONT, 1), PathPartKind::Runnable { processor: None }, 40_000, 40_700),
            (of(FRONT, 1), PathPartKind::Running, 40_700, 42_000),
        ]
    );
    let lock = found.iter().find(|part| part.thread == of(BACK, 8)).expect("the holder");
    assert_eq!(lock.blocks, Some(of(BACK, 9)));
    // Each part knows its times on its own host, and why its thread is on the path.
    assert_eq!(lock.own_ns, Some([OFFSET_NS + 12_000, OFFSET_NS + 30_000]));
    let chain: Vec<_> = path
        .chain(lock)
        .into_iter()
        .map(|link| path.links[link])
        .map(|link| (link.waiter, link.thread, link.off_ns, link.is_message))
        .collect();
    assert_eq!(
        chain,
        [
            (of(FRONT, 1), of(FRONT, 2), 2_500, false),
            (of(FRONT, 2), of(BACK, 9), 4_000, true),
            (of(BACK, 9), of(BACK, 8), OFFSET_NS + 12_000, false),
        ]
    );
    assert!(path.chain(found.last().expect("parts")).is_empty());
}

/// The back end's thread was stopped when the request came: the message waited for the thread, not the thread for it.
#[test]
fn a_message_ends_no_wait_that_was_for_something_else() {
    let (mut waits, messages, edges) = story();
    waits[3].may_be_input = false;
    let waits = FleetWaits::of(&waits).expect("few");
    let paths = CriticalPaths::new(&waits, &messages, &edges);
    let path = paths.critical(&side(FRONT, 1, 1_000), &side(FRONT, 1, 42_000), place);
    assert_sums(&path.parts, 1_000, 42_000);
    let stopped = path.parts.iter().find(|part| part.end_ns == 9_000);
    let stopped = stopped.expect("a part");
    assert_eq!(
        (stopped.thread, stopped.kind, stopped.begin_ns),
        (of(BACK, 9), PathPartKind::Blocked, 4_000)
    );
}

#[test]
fn a_message_ends_no_wait_that_was_over_when_it_was_sent() {
    let (rows, edge) = message(side(FRONT, 2, 8_000), side(FRONT, 1, 9_000), 1);
    let waits = [wait(FRONT, 1, (1_000, 5_000, 5_100), Some(3))];
    let ended_by = |edge: MessageEdge| {
        let waits = FleetWaits::of(&waits).expect("few");
        let paths = CriticalPaths::new(&waits, &rows, &[edge]);
        let path = paths.critical(&side(FRONT, 1, 500), &side(FRONT, 1, 10_000), |_| None);
        assert_sums(&path.parts, 500, 10_000);
        path.links.first().map(|link| link.thread)
    };
    assert_eq!(ended_by(edge), Some(of(FRONT, 3)));
    let sent = side(FRONT, 2, 4_900);
    assert_eq!(ended_by(MessageEdge { sent, ..edge }), Some(of(FRONT, 2)));
}

/// A front end asks two back ends at once, and reads the answer of the slow one first.
#[test]
fn without_the_slow_one_it_would_wait_for_the_other() {
    let answer = |id: u32, sent_ns, received_ns| {
        let (mut rows, mut edge) =
            message(side(FRONT, id, sent_ns), side(FRONT, 1, received_ns), 1);
        rows.iter_mut().for_each(|row| row.connection = u64::from(id));
        (edge.from.connection, edge.to.connection) = (u64::from(id), u64::from(id));
        (rows, edge)
    };
    let (slow, quick) = (answer(2, 9_000, 9_300), answer(3, 4_000, 9_400));
    let waits = [wait(FRONT, 1, (1_000, 9_100, 9_200), None)];
    let messages = [slow.0, quick.0].concat();
    let waits = FleetWaits::of(&waits).expect("few");
    let paths = CriticalPaths::new(&waits, &messages, &[slow.1, quick.1]);
    let path = paths.critical(&side(FRONT, 1, 500), &side(FRONT, 1, 10_000), |_| None);
    assert_sums(&path.parts, 500, 10_000);
    assert_eq!(path.links.len(), 1);
    assert_eq!(path.links[0].slack_ns, 9_100 - 4_000);
    // The slow one's 8 us are on the path, but the quick one's answer came only after 3 us.
    let is_slow = |at: usize| path.parts[at].thread == of(FRONT, 2);
    let length = |at: usize| path.parts[at].end_ns - path.parts[at].begin_ns;
    let all: u64 = (0..path.parts.len()).filter(|at| is_slow(*at)).map(length).sum();
    assert_eq!(all, 8_000);
    let without = |at| if is_slow(at) { length(at) } else { 0 };
    assert_eq!(path.saved_ns(without), 5_100);
    // Half of it hides nothing of the other.
    assert_eq!(path.saved_ns(|at| without(at) / 2), 4_000);
    assert_eq!(path.saved_ns(length), 9_500 - 8_000 + 5_100);
}

#[test]
fn without_clocks_a_path_stays_on_its_host() {
    let (waits, messages, edges) = story();
    let waits = FleetWaits::of(&waits).expect("few");
    let paths = CriticalPaths::new(&waits, &messages, &edges);
    let path = paths.critical(&side(FRONT, 1, 1_000), &side(FRONT, 1, 42_000), |_| None);
    let found = path.parts;
    assert!(found.iter().all(|part| part.thread.host == HostId(FRONT)));
    let blocked = found.iter().find(|part| part.kind == PathPartKind::Blocked).expect("a wait");
    assert_eq!((blocked.begin_ns, blocked.end_ns), (4_000, 38_000));
    assert_sums(&found, 1_000, 42_000);
}

#[test]
fn threads_that_wait_for_each_other_end_the_path() {
    let waits = [wait(FRONT, 1, (10, 50, 50), Some(2)), wait(FRONT, 2, (10, 50, 50), Some(1))];
    let waits = FleetWaits::of(&waits).expect("few");
    let paths = CriticalPaths::new(&waits, &[], &[]);
    let path = paths.critical(&side(FRONT, 1, 5), &side(FRONT, 1, 60), |_| None);
    let found = path.parts;
    assert_sums(&found, 5, 60);
    assert!(
        found.iter().any(|part| part.kind == PathPartKind::Blocked && part.thread == of(FRONT, 2))
    );
    let nothing = CriticalPaths::new(&FleetWaits::default(), &[], &[]).critical(
        &side(FRONT, 1, 60),
        &side(FRONT, 1, 5),
        |_| None,
    );
    assert!(nothing.parts.is_empty());
}

#[test]
fn turns_of_a_wait_are_the_time_of_who_ended_the_last() {
    // Thread 1 waits for a time and looks, twice; once it loses its processor while it looks. Worker 2 works meanwhile.
    let preempted = ThreadWait { woken_ns: None, ..wait(FRONT, 1, (5_110, 0, 5_200), None) };
    let turns = vec![
        wait(FRONT, 1, (1_000, 5_000, 5_100), None),
        preempted,
        wait(FRONT, 1, (5_210, 9_000, 9_100), None),
        wait(FRONT, 1, (9_200, 12_000, 12_100), Some(2)),
        wait(FRONT, 2, (100, 1_200, 1_300), Some(5)),
    ];
    let of_worker = |waits: &[ThreadWait], messages: &[MessageRow]| -> u64 {
        let waits = FleetWaits::of(waits).expect("few");
        let paths = CriticalPaths::new(&waits, messages, &[]);
        let path = paths.critical(&side(FRONT, 1, 500), &side(FRONT, 1, 12_500), |_| None);
        assert_sums(&path.parts, 500, 12_500);
        let parts = path
            .parts
            .iter()
            .filter(|part| part.thread == of(FRONT, 2) && part.kind == PathPartKind::Running);
        parts.map(|part| part.end_ns - part.begin_ns).sum()
    };
    assert_eq!(of_worker(&turns, &[]), 12_000 - 1_300);
    let last_only = 12_000 - 9_200;
    // It sends between, wakes somebody, or computes: then it did something of its own.
    let ([sends, _], _) = message(side(FRONT, 1, 9_150), side(FRONT, 7, 9_160), 1);
    assert_eq!(of_worker(&turns, &[sends]), last_only);
    let mut wakes = turns.clone();
    wakes.push(wait(FRONT, 7, (2_000, 9_150, 9_160), Some(1)));
    assert_eq!(of_worker(&wakes, &[]), last_only);
    let mut computes = turns.clone();
    computes[3].off_ns = 9_600;
    assert_eq!(of_worker(&computes, &[]), 12_000 - 9_600);
    // A sleep that only time ends is none of these.
    let mut sleeps = turns;
    sleeps[2].may_be_input = false;
    assert_eq!(of_worker(&sleeps, &[]), last_only);
}

/// Returns the longest part of a thread, with the links of its path.
fn longest(
    waits: &[ThreadWait],
    messages: &[MessageRow],
    edges: &[MessageEdge],
) -> (CriticalPathPart, Vec<EarlierWork>) {
    let waits = FleetWaits::of(waits).expect("few");
    let paths = CriticalPaths::new(&waits, messages, edges);
    let path = paths.critical(&side(FRONT, 1, 500), &side(FRONT, 1, 42_000), place);
    assert_sums(&path.parts, 500, 42_000);
    let longest = path.parts.iter().max_by_key(|part| part.end_ns - part.begin_ns);
    let before = path.links.iter().map(|link| link.before).collect();
    (*longest.expect("parts"), before)
}

#[test]
fn who_reads_an_answer_for_another_thread_only_passes_it_on() {
    // Thread 1 asks the back end, and waits for helper 2, which works for others until 30 us and then reads the answer.
    let asks = message(side(FRONT, 1, 1_000), side(BACK, 9, OFFSET_NS + 2_000), 1);
    let answers = message(side(BACK, 9, OFFSET_NS + 37_500), side(FRONT, 2, 38_300), 1);
    let messages = [asks.0, answers.0].concat();
    let edges = [asks.1, answers.1];
    let mut waits = vec![
        wait(FRONT, 1, (1_200, 40_000, 40_100), Some(2)),
        wait(FRONT, 2, (30_000, 38_000, 38_200), None),
        wait(FRONT, 2, (40_500, 41_000, 41_100), None),
        wait(BACK, 9, (OFFSET_NS + 10, OFFSET_NS + 1_900, OFFSET_NS + 1_950), None),
    ];
    let (part, before) = longest(&waits, &messages, &edges);
    assert_eq!((part.thread, part.kind), (of(BACK, 9), PathPartKind::Running));
    assert_eq!((part.begin_ns, part.end_ns), (1_950, 37_500));
    assert_eq!(before, [EarlierWork::WasFree, EarlierWork::WasFree]);
    // It answers others until 38 us, and then reads what has come without a wait.
    waits.remove(1);
    waits.push(wait(FRONT, 2, (100, 200, 300), None));
    let ([mut other, _], _) = message(side(FRONT, 2, 38_000), side(FRONT, 7, 38_100), 1);
    other.connection = 2;
    let messages = [&messages[..], &[other]].concat();
    let (part, before) = longest(&waits, &messages, &edges);
    assert_eq!((part.begin_ns, part.end_ns), (1_950, 37_500));
    assert_eq!(before, [EarlierWork::OnlyForItself, EarlierWork::WasFree]);
}

#[test]
fn what_a_free_server_did_before_a_late_message_does_not_count() {
    let asks = message(side(FRONT, 1, 1_000), side(BACK, 9, OFFSET_NS + 25_500), 1);
    let answers = message(side(BACK, 9, OFFSET_NS + 30_000), side(FRONT, 1, 40_700), 1);
    let messages = [asks.0, answers.0].concat();
    let waits = |held: bool| {
        let server = |off_ns, woken_ns, on_ns| {
            let times = [off_ns, woken_ns, on_ns].map(|at_ns| OFFSET_NS + at_ns);
            wait(BACK, 9, (times[0], times[1], times[2]), None)
        };
        let stopped = ThreadWait { may_be_input: !held, ..server(12_000, 19_000, 19_900) };
        let asking = wait(FRONT, 1, (1_100, 40_500, 40_600), None);
        [asking, stopped, server(20_000, 25_000, 25_400)]
    };
    let edges = [asks.1, answers.1];
    let (part, before) = longest(&waits(false), &messages, &edges);
    assert!(matches!(part.kind, PathPartKind::Network { from, .. } if from == of(FRONT, 1)));
    assert_eq!((part.thread, part.begin_ns), (of(BACK, 9), 1_100));
    assert_eq!(part.end_ns, 25_000);
    assert_eq!(before, [EarlierWork::WasFree]);
    // Somebody has stopped it meanwhile.
    let waits = FleetWaits::of(&waits(true)).expect("few");
    let paths = CriticalPaths::new(&waits, &messages, &edges);
    let path = paths.critical(&side(FRONT, 1, 500), &side(FRONT, 1, 42_000), place);
    let blocked = path.parts.iter().find(|one| one.kind == PathPartKind::Blocked);
    let blocked = blocked.expect("a stop");
    assert_eq!((blocked.begin_ns, blocked.end_ns), (12_000, 19_000));
}

/// Checks that parts follow each other without a gap from the begin to the end.
fn assert_sums(parts: &[CriticalPathPart], begin_ns: u64, end_ns: u64) {
    assert_eq!(parts.first().map(|part| part.begin_ns), Some(begin_ns));
    assert_eq!(parts.last().map(|part| part.end_ns), Some(end_ns));
    for pair in parts.windows(2) {
        assert_eq!(pair[0].end_ns, pair[1].begin_ns);
    }
    let sum: u64 = parts.iter().map(|part| part.end_ns - part.begin_ns).sum();
    assert_eq!(sum, end_ns - begin_ns);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn parts_sum_to_the_time_whatever_the_rows(
        waits in prop::collection::vec((0_u32..2, 0_u32..4, 0_u64..100, 0_u64..100, 0_u64..100,
                                        prop::option::of(0_u32..4), any::<bool>()), 0..60),
        messages in prop::collection::vec((0_u32..2, 0_u32..4, 0_u64..100, 0_u32..2, 0_u32..4, 0_u64..100), 0..30),
        far in prop::collection::vec(any::<u64>(), 3),
        begin_ns in 0_u64..100, end_ns in 0_u64..110, is_known in any::<bool>(),
    ) {
        let mut rows: Vec<ThreadWait> = waits
            .into_iter()
            .map(|(host, id, off_ns, woken_ns, on_ns, waker, is_woken)| ThreadWait {
                woken_ns: is_woken.then_some(woken_ns),
                ..wait(host, id, (off_ns, woken_ns, on_ns), waker)
            })
            .collect();
        rows.push(wait(0, 1, (far[0], far[1], far[2]), Some(2)));
        let (mut calls, mut edges) = (Vec::new(), Vec::new());
        for (at, (host, id, sent_ns, to, to_id, received_ns)) in messages.into_iter().enumerate() {
            let (both, edge) = message(side(host, id, sent_ns), side(to, to_id, received_ns), at as u64);
            calls.extend(both);
            edges.push(edge);
        }
        let placed = |event: HostEvent| is_known.then(|| ReferenceTime {
            at_ns: Some(event.at_ns.saturating_sub(20)),
            bounds: Bounds::AtLeast(3),
        });
        let waits = FleetWaits::of(&rows).expect("few");
        let paths = CriticalPaths::new(&waits, &calls, &edges);
        for id in 0..4 {
            let path = paths.critical(&side(0, 1, begin_ns), &side(0, id, end_ns), placed);
            let found = &path.parts;
            if begin_ns < end_ns {
                assert_sums(found, begin_ns, end_ns);
            } else {
                prop_assert!(found.is_empty());
            }
            for part in found {
                let chain = path.chain(part);
                prop_assert!(chain.is_sorted());
                let last = chain.last().map(|&link| path.links[link].thread);
                prop_assert_eq!(last, part.link.map(|_| part.thread));
            }
            // Nothing is saved of nothing, and never more than is removed.
            prop_assert_eq!(path.saved_ns(|_| 0), 0);
            let removed = |at: usize| (found[at].end_ns - found[at].begin_ns) / 2;
            let all: u64 = (0..found.len()).map(removed).sum();
            prop_assert!(path.saved_ns(removed) <= all);
        }
    }
}
