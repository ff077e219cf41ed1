//! Forged rows: the parts sum to the time all the same, and the walk ends.

use luc_events::WaitCause;
use luc_waits::{
    CallIndex, EndIndex, GraphCall, GraphMessage, GraphMessageId, GraphThread, GraphWait,
    MessageIndex, SyncCallSpan, ThreadFacts, TimeSpan, TraceClocks, TraceIndex, TraceRows,
    TraceThread, WaitEnd, WaitGraph, WaitLabels,
};
use proptest::prelude::*;

const TRACES: u32 = 2;
const THREADS: u32 = 4;
const CALLS: u32 = 6;

/// Clocks that differ by any time.
#[derive(Debug)]
struct AnyClocks(Option<i64>);

impl TraceClocks for AnyClocks {
    fn ahead_ns(&self, from: TraceIndex, to: TraceIndex, _: u64) -> Option<i64> {
        self.0.map(|ahead_ns| if from < to { ahead_ns } else { ahead_ns.saturating_neg() })
    }
}

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0_u64..60, 1 => Just(u64::MAX), 1 => any::<u64>()]
}

/// Threads, also some that do not exist.
fn thread() -> impl Strategy<Value = TraceThread> {
    (0..THREADS + 1).prop_map(TraceThread)
}

fn message_id() -> impl Strategy<Value = GraphMessageId> {
    (0..TRACES + 1, 0_u32..14).prop_map(|(trace, message)| GraphMessageId {
        trace: TraceIndex(trace),
        message: MessageIndex(message),
    })
}

fn cause() -> impl Strategy<Value = WaitCause> {
    prop::sample::select(WaitCause::ALL)
}

fn end() -> impl Strategy<Value = WaitEnd> {
    prop::sample::select(vec![
        WaitEnd::NotKnown,
        WaitEnd::Thread,
        WaitEnd::Timer,
        WaitEnd::Interrupt,
        WaitEnd::Unfinished,
    ])
}

fn wait() -> impl Strategy<Value = GraphWait> {
    let times = (time(), prop::option::of(time()), time());
    (thread(), times, prop::option::of(thread()), end(), cause()).prop_map(
        |(thread, (off_ns, woken_ns, on_ns), waker, end, cause)| GraphWait {
            thread,
            off_ns,
            woken_ns,
            on_ns,
            waker,
            end,
            cause,
            processor: None,
        },
    )
}

fn message() -> impl Strategy<Value = GraphMessage> {
    let other = prop::option::of(message_id());
    ((time(), time()), thread(), 0_u32..4, any::<[bool; 2]>(), other).prop_map(
        |((at_ns, moved_ns), thread, end, [is_received, has_packet], other)| GraphMessage {
            at_ns,
            moved_ns,
            has_packet,
            thread,
            end: EndIndex(end),
            is_received,
            other,
        },
    )
}

fn call() -> impl Strategy<Value = GraphCall> {
    let side = || prop::option::of(message_id());
    let made_for = prop::option::of((0..CALLS + 1).prop_map(CallIndex));
    (side(), side(), side(), side(), made_for).prop_map(|(sent, read, done, answer, made_for)| {
        GraphCall { sent, read, done, answer, made_for, address: None }
    })
}

fn facts() -> impl Strategy<Value = (u32, Option<TraceThread>, [Option<u64>; 2], bool)> {
    let times = [prop::option::of(time()), prop::option::of(time())];
    (0_u32..2, prop::option::of(thread()), times, any::<bool>())
}

fn trace() -> impl Strategy<Value = TraceRows> {
    let sync = (thread(), time(), time()).prop_map(|(thread, from_ns, to_ns)| SyncCallSpan {
        thread,
        span: TimeSpan::new(from_ns, to_ns),
    });
    (
        prop::collection::vec(facts(), THREADS as usize),
        prop::collection::vec(wait(), 0..30),
        prop::collection::vec(message(), 0..14),
        prop::collection::vec(sync, 0..4),
        prop_oneof![Just(0), time()],
    )
        .prop_map(|(facts, waits, messages, syncs, known_since_ns)| {
            // The graph gets labels of another one: they are names without words.
            let label = WaitLabels::default().index("any");
            let facts = facts.into_iter();
            let threads = facts.map(|(process, creator, times, is_recorded)| ThreadFacts {
                process,
                service: label,
                name: label,
                creator,
                started_ns: times[0],
                ended_ns: times[1],
                is_recorded,
            });
            TraceRows { threads: threads.collect(), waits, messages, syncs, known_since_ns }
        })
}

proptest! {
    #[test]
    fn parts_sum_to_the_time(
        traces in prop::collection::vec(trace(), TRACES as usize),
        calls in prop::collection::vec(call(), CALLS as usize),
        ahead_ns in prop::option::of(prop_oneof![-20_i64..20, any::<i64>()]),
        span in (time(), time()),
    ) {
        let clocks = Box::new(AnyClocks(ahead_ns));
        let graph = WaitGraph::new(traces, calls, WaitLabels::default(), clocks).expect("few");
        let span = TimeSpan::new(span.0, span.1);
        for trace in (0..TRACES + 1).map(TraceIndex) {
            for thread in (0..THREADS + 1).map(TraceThread) {
                let found = graph.roots_of(GraphThread { trace, thread }, span);
                prop_assert_eq!(found.total_ns(), span.length_ns());
                for part in &found.parts {
                    prop_assert!(found.chain(part).len() <= found.links.len());
                }
            }
        }
        for call in (0..CALLS + 1).map(CallIndex) {
            let _ = graph.roots_of_call(call);
        }
    }
}
