//! Builds a trace row by row, and shows roots as lines. All times of stories are in milliseconds.

use luc_events::WaitCause;
use luc_waits::{
    CallIndex, EndIndex, FoundRoots, GraphCall, GraphMessage, GraphMessageId, GraphThread,
    GraphWait, MessageIndex, OneClock, RootSums, SyncCallSpan, ThreadFacts, TimeSpan, TraceClocks,
    TraceIndex, TraceRows, TraceThread, WaitEnd, WaitGraph, WaitLabels, WaitRoot,
};

/// Nanoseconds of a millisecond.
pub(crate) const MS: u64 = 1_000_000;

/// A side of a message: thread, end of the connection, time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At(pub(crate) GraphThread, pub(crate) u32, pub(crate) u64);

/// Rows of a message that was sent and received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) sent: GraphMessageId,
    pub(crate) received: GraphMessageId,
}

/// The rows of a story: one trace, or several.
#[derive(Debug, Default)]
pub(crate) struct Story {
    traces: Vec<TraceRows>,
    calls: Vec<GraphCall>,
    pub(crate) labels: WaitLabels,
}

impl Story {
    /// A story of one host.
    pub(crate) fn new() -> Self {
        Self::of_hosts(1)
    }

    pub(crate) fn of_hosts(hosts: usize) -> Self {
        Self { traces: vec![TraceRows::default(); hosts], ..Self::default() }
    }

    /// Adds a thread on the first host. Threads of one service are of one process.
    pub(crate) fn thread(&mut self, service: &str, name: &str) -> GraphThread {
        self.thread_on(0, service, name)
    }

    pub(crate) fn thread_on(&mut self, host: u32, service: &str, name: &str) -> GraphThread {
        let process = service
            .bytes()
            .fold(7, |hash: u32, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
        self.thread_of_process(host, process, service, name)
    }

    /// Adds a thread of a process with a number: a service may have several processes.
    pub(crate) fn thread_of_process(
        &mut self,
        host: u32,
        process: u32,
        service: &str,
        name: &str,
    ) -> GraphThread {
        let facts = ThreadFacts {
            process,
            service: self.labels.index(service),
            name: self.labels.index(name),
            creator: None,
            started_ns: None,
            ended_ns: None,
            is_recorded: true,
        };
        let threads = &mut self.traces[host as usize].threads;
        threads.push(facts);
        GraphThread { trace: TraceIndex(host), thread: TraceThread(threads.len() as u32 - 1) }
    }

    pub(crate) fn facts(&mut self, thread: GraphThread) -> &mut ThreadFacts {
        &mut self.traces[thread.trace.0 as usize].threads[thread.thread.0 as usize]
    }

    /// Adds a wait; `times` are off, woken and on.
    pub(crate) fn wait(
        &mut self,
        thread: GraphThread,
        cause: WaitCause,
        times: [u64; 3],
        waker: Option<GraphThread>,
    ) {
        self.wait_ended(thread, cause, times, waker, WaitEnd::NotKnown);
    }

    pub(crate) fn wait_ended(
        &mut self,
        thread: GraphThread,
        cause: WaitCause,
        times: [u64; 3],
        waker: Option<GraphThread>,
        end: WaitEnd,
    ) {
        let [off_ns, woken_ns, on_ns] = times.map(|at| at * MS);
        self.traces[thread.trace.0 as usize].waits.push(GraphWait {
            thread: thread.thread,
            off_ns,
            woken_ns: Some(woken_ns),
            on_ns,
            waker: waker.map(|waker| waker.thread),
            end,
            cause,
            processor: None,
        });
    }

    /// Adds a wait of a thread of the first host, after which it is on a processor.
    pub(crate) fn wait_for(
        &mut self,
        processor: u32,
        thread: GraphThread,
        cause: WaitCause,
        times: [u64; 3],
    ) {
        self.wait(thread, cause, times, None);
        if let Some(wait) = self.traces[0].waits.last_mut() {
            wait.processor = Some(processor);
        }
    }

    pub(crate) fn fsync(&mut self, thread: GraphThread, from: u64, to: u64) {
        let span = TimeSpan::new(from * MS, to * MS);
        let call = SyncCallSpan { thread: thread.thread, span };
        self.traces[thread.trace.0 as usize].syncs.push(call);
    }

    /// Adds a message within a host, without a packet.
    pub(crate) fn message(&mut self, sent: At, received: At) -> Message {
        self.add_message(sent, received, [sent.2, sent.2], false)
    }

    /// Adds a message that left its host at one time, and was at the socket at another.
    pub(crate) fn message_by(&mut self, sent: At, received: At, moved: [u64; 2]) -> Message {
        self.add_message(sent, received, moved, true)
    }

    fn add_message(
        &mut self,
        sent: At,
        received: At,
        moved: [u64; 2],
        has_packet: bool,
    ) -> Message {
        let ids = [self.next_message(sent, 0), self.next_message(received, 0)];
        let [sent_id, received_id] = if sent.0.trace == received.0.trace {
            [ids[0], self.next_message(received, 1)]
        } else {
            ids
        };
        let row = |At(thread, end, at): At, moved: u64, is_received, other| GraphMessage {
            at_ns: at * MS,
            moved_ns: moved * MS,
            has_packet,
            thread: thread.thread,
            end: EndIndex(end),
            is_received,
            other: Some(other),
        };
        let sent_row = row(sent, moved[0], false, received_id);
        let received_row = row(received, moved[1], true, sent_id);
        self.traces[sent.0.trace.0 as usize].messages.push(sent_row);
        self.traces[received.0.trace.0 as usize].messages.push(received_row);
        Message { sent: sent_id, received: received_id }
    }

    fn next_message(&self, At(thread, ..): At, more: u32) -> GraphMessageId {
        let messages = self.traces[thread.trace.0 as usize].messages.len() as u32;
        GraphMessageId { trace: thread.trace, message: MessageIndex(messages + more) }
    }

    /// Adds a call whose both sides are in a trace.
    pub(crate) fn call(
        &mut self,
        request: Message,
        answer: Message,
        made_for: Option<CallIndex>,
    ) -> CallIndex {
        self.call_of(GraphCall {
            sent: Some(request.sent),
            read: Some(request.received),
            done: Some(answer.sent),
            answer: Some(answer.received),
            made_for,
            address: None,
        })
    }

    pub(crate) fn call_of(&mut self, call: GraphCall) -> CallIndex {
        self.calls.push(call);
        CallIndex(self.calls.len() as u32 - 1)
    }

    pub(crate) fn graph(self) -> WaitGraph<'static> {
        self.graph_by(Box::new(OneClock))
    }

    pub(crate) fn graph_by(self, clocks: Box<dyn TraceClocks>) -> WaitGraph<'static> {
        WaitGraph::new(self.traces, self.calls, self.labels, clocks).expect("few rows")
    }
}

/// Returns the roots of a thread's time, as lines of time, kind, service and thread name; the longest first.
pub(crate) fn roots(graph: &WaitGraph<'_>, thread: GraphThread, from: u64, to: u64) -> Vec<String> {
    let found = graph.roots_of(thread, TimeSpan::new(from * MS, to * MS));
    assert_eq!(found.total_ns(), (to - from) * MS, "parts sum to the time");
    lines(graph, &found)
}

/// Returns the roots of a call's time, as lines.
pub(crate) fn call_roots(graph: &WaitGraph<'_>, call: CallIndex, time: u64) -> Vec<String> {
    let found = graph.roots_of_call(call).expect("a call with times");
    assert_eq!(found.total_ns(), time * MS, "parts sum to the time");
    lines(graph, &found)
}

pub(crate) fn lines(graph: &WaitGraph<'_>, found: &FoundRoots) -> Vec<String> {
    let times = RootSums::of(found).by_time();
    times.iter().map(|time| format!("{} {}", time.ns / MS, words(graph, &time.root))).collect()
}

pub(crate) fn words(graph: &WaitGraph<'_>, root: &WaitRoot) -> String {
    let [service, name] = graph.names_of(root);
    format!("{} {service} {name}", root.kind.name()).trim_end().to_owned()
}
