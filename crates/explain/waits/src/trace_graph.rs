//! Rows of one trace, found by thread, process and end.

use std::collections::HashMap;
use std::hash::Hash;

use crate::graph_error::WaitGraphError;
use crate::graph_ids::{EndIndex, MessageIndex, TraceThread};
use crate::graph_rows::{GraphMessage, ThreadFacts, TraceRows};
use crate::processor_runs::{ProcessorRuns, RunPiece};
use crate::time_span::TimeSpan;
use crate::wait_rows::WaitRows;

/// Messages by thread, process or end, each list in the order of some time.
type MessageLists<K> = HashMap<K, Vec<MessageIndex>>;

/// The rows of one trace.
#[derive(Debug)]
pub(crate) struct TraceGraph {
    threads: Vec<ThreadFacts>,
    pub(crate) waits: WaitRows,
    runs: ProcessorRuns,
    messages: Vec<GraphMessage>,
    /// By thread, in the order of sends and receives.
    of_threads: MessageLists<TraceThread>,
    /// Sends by end, in order.
    sends: MessageLists<EndIndex>,
    /// Receives by process, in the order of arrivals at the socket.
    arrivals: MessageLists<u32>,
    /// fsyncs and the like by thread, in the order of their begins.
    syncs: HashMap<TraceThread, Vec<TimeSpan>>,
    /// Time since which all rows are there.
    pub(crate) known_since_ns: u64,
}

impl TraceGraph {
    pub(crate) fn new(rows: TraceRows) -> Result<Self, WaitGraphError> {
        let TraceRows { threads, waits, messages, syncs: sync_calls, known_since_ns } = rows;
        if u32::try_from(messages.len()).is_err() || u32::try_from(threads.len()).is_err() {
            return Err(WaitGraphError::TooManyMessages);
        }
        let mut syncs: HashMap<TraceThread, Vec<TimeSpan>> = HashMap::new();
        for call in sync_calls {
            syncs.entry(call.thread).or_default().push(call.span);
        }
        for calls in syncs.values_mut() {
            calls.sort_unstable();
        }
        let at_ns = |message: &GraphMessage| (message.at_ns, !message.is_received);
        let process = |message: &GraphMessage| {
            let facts: Option<&ThreadFacts> = threads.get(message.thread.0 as usize);
            facts.filter(|_| message.is_received).map(|facts| facts.process)
        };
        let waits = WaitRows::new(threads.len(), waits)?;
        Ok(Self {
            runs: ProcessorRuns::of(&waits),
            waits,
            of_threads: group(&messages, |message| Some(message.thread), at_ns),
            sends: group(&messages, |message| (!message.is_received).then_some(message.end), at_ns),
            arrivals: group(&messages, process, |message| (message.moved_ns, false)),
            syncs,
            threads,
            messages,
            known_since_ns,
        })
    }

    pub(crate) fn facts(&self, thread: TraceThread) -> Option<&ThreadFacts> {
        self.threads.get(thread.0 as usize)
    }

    /// Divides a time by the threads that had a processor, the earliest part first.
    pub(crate) fn runs_on(&self, processor: Option<u32>, span: TimeSpan) -> Vec<RunPiece> {
        match processor {
            Some(processor) => self.runs.pieces(&self.waits, processor, span),
            None => vec![RunPiece { thread: None, span }],
        }
    }

    /// Returns whether two threads are of one process.
    pub(crate) fn is_same_process(&self, a: TraceThread, b: TraceThread) -> bool {
        let process = |thread| self.facts(thread).map(|facts| facts.process);
        process(a).is_some() && process(a) == process(b)
    }

    /// Returns whether two threads are of one service.
    pub(crate) fn is_same_service(&self, a: TraceThread, b: TraceThread) -> bool {
        let service = |thread| self.facts(thread).map(|facts| facts.service);
        service(a).is_some() && service(a) == service(b)
    }

    /// Returns the begin of a thread that began between two times, both excluded.
    pub(crate) fn born_within(&self, thread: TraceThread, span: TimeSpan) -> Option<u64> {
        let started_ns = self.facts(thread)?.started_ns?;
        (span.from_ns() < started_ns && started_ns < span.to_ns()).then_some(started_ns)
    }

    /// Returns whether the trace has the waits of a thread, so that it ran between them.
    pub(crate) fn is_recorded(&self, thread: TraceThread) -> bool {
        self.facts(thread).is_some_and(|facts| facts.is_recorded)
    }

    /// Returns the last fsync or similar call of a thread that began before a time.
    pub(crate) fn sync_before(&self, thread: TraceThread, at_ns: u64) -> Option<TimeSpan> {
        let calls = self.syncs.get(&thread)?;
        let next = calls.partition_point(|call| call.from_ns() < at_ns);
        calls.get(next.checked_sub(1)?).copied()
    }

    /// Returns whether a thread was in fsync or a similar call at a time.
    pub(crate) fn is_in_sync(&self, thread: TraceThread, at_ns: u64) -> bool {
        let last = self.sync_before(thread, at_ns.saturating_add(1));
        last.is_some_and(|call| at_ns < call.to_ns())
    }

    pub(crate) fn message(&self, index: MessageIndex) -> Option<&GraphMessage> {
        self.messages.get(index.0 as usize)
    }

    /// Returns the messages of a thread from one time to another, both included, in order.
    pub(crate) fn messages_of(
        &self,
        thread: TraceThread,
        [from_ns, to_ns]: [u64; 2],
    ) -> impl DoubleEndedIterator<Item = (MessageIndex, &GraphMessage)> {
        let all = self.of_threads.get(&thread).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|&one| self.at_ns(one) < from_ns);
        let end = all.partition_point(|&one| self.at_ns(one) <= to_ns).max(first);
        all[first..end].iter().map(move |&index| (index, &self.messages[index.0 as usize]))
    }

    /// Returns the last receive of a process that was at its socket by a time.
    pub(crate) fn last_arrival(&self, thread: TraceThread, by_ns: u64) -> Option<MessageIndex> {
        let arrivals = self.arrivals.get(&self.facts(thread)?.process)?;
        let moved_ns = |index: MessageIndex| self.messages[index.0 as usize].moved_ns;
        let next = arrivals.partition_point(|&one| moved_ns(one) <= by_ns);
        arrivals.get(next.checked_sub(1)?).copied()
    }

    /// Returns the last send on an end before a time.
    pub(crate) fn last_send(&self, end: EndIndex, before_ns: u64) -> Option<MessageIndex> {
        let sends = self.sends.get(&end)?;
        let next = sends.partition_point(|&one| self.at_ns(one) < before_ns);
        sends.get(next.checked_sub(1)?).copied()
    }

    fn at_ns(&self, index: MessageIndex) -> u64 {
        self.messages[index.0 as usize].at_ns
    }
}

/// Groups messages by a key, each group in an order. Messages without a key are left out.
fn group<K: Eq + Hash, O: Ord>(
    messages: &[GraphMessage],
    key_of: impl Fn(&GraphMessage) -> Option<K>,
    order: impl Fn(&GraphMessage) -> O,
) -> MessageLists<K> {
    let mut lists: MessageLists<K> = HashMap::new();
    for (index, message) in (0..).map(MessageIndex).zip(messages) {
        if let Some(key) = key_of(message) {
            lists.entry(key).or_default().push(index);
        }
    }
    for list in lists.values_mut() {
        list.sort_unstable_by_key(|index| (order(&messages[index.0 as usize]), *index));
        list.shrink_to_fit();
    }
    lists
}
