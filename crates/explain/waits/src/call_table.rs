//! Calls by the ends that they were made on, and by the call that they were made for.

use std::collections::{HashMap, HashSet};

use crate::graph_ids::{CallIndex, GraphEnd, GraphMessageId, GraphThread};
use crate::graph_rows::{GraphCall, GraphMessage};
use crate::trace_graph::TraceGraph;
use crate::wait_labels::LabelIndex;

/// Maximum number of requests of a thread that are looked at for open ones.
const MAX_OPEN_REQUESTS: usize = 64;

/// A message with its row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedMessage {
    pub(crate) id: GraphMessageId,
    pub(crate) row: GraphMessage,
}

impl PlacedMessage {
    pub(crate) fn graph_end(&self) -> GraphEnd {
        GraphEnd { trace: self.id.trace, end: self.row.end }
    }

    pub(crate) fn graph_thread(&self) -> GraphThread {
        GraphThread { trace: self.id.trace, thread: self.row.thread }
    }
}

/// A call with its rows: a known one, or one that the order on its connection suggests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FollowedCall {
    /// Index of a known call.
    pub(crate) known: Option<CallIndex>,
    /// Call that it was made for, if that is known.
    pub(crate) made_for: Option<CallIndex>,
    pub(crate) sent: Option<PlacedMessage>,
    pub(crate) read: Option<PlacedMessage>,
    pub(crate) done: Option<PlacedMessage>,
    pub(crate) answer: Option<PlacedMessage>,
    pub(crate) address: Option<LabelIndex>,
}

impl FollowedCall {
    /// Returns its first message, which tells calls apart.
    pub(crate) fn first_message(&self) -> Option<GraphMessageId> {
        self.sent.or(self.read).map(|message| message.id)
    }
}

/// A client's call on one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ClientCall {
    sent_ns: u64,
    answer_ns: u64,
    call: CallIndex,
}

/// The calls of all traces.
#[derive(Debug, Default)]
pub(crate) struct CallTable {
    calls: Vec<GraphCall>,
    /// Answered calls by the client's end, in the order of sends.
    of_clients: HashMap<GraphEnd, Vec<ClientCall>>,
    /// Calls by the call that they were made for, in the order of answers.
    made_for: HashMap<CallIndex, Vec<CallIndex>>,
    /// Ends on which a server reads requests.
    servers: HashSet<GraphEnd>,
    /// Calls by the first and last messages of both sides.
    of_messages: HashMap<GraphMessageId, MessageRole>,
    /// Requests by the thread that read them, in the order of receives.
    read_by: HashMap<GraphThread, Vec<OpenRequest>>,
}

/// Part of a message in a known call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageRole {
    pub(crate) call: CallIndex,
    /// Whether it is the server's message.
    pub(crate) is_servers: bool,
}

/// A request from its receive to its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OpenRequest {
    read_ns: u64,
    done_ns: u64,
    call: CallIndex,
}

impl CallTable {
    pub(crate) fn new(calls: Vec<GraphCall>, traces: &[TraceGraph]) -> Self {
        let mut table = Self { calls, ..Self::default() };
        let indices = (0..).map(CallIndex).take(table.calls.len());
        let placed: Vec<FollowedCall> =
            indices.clone().filter_map(|index| table.call(index, traces)).collect();
        let mut made_for: HashMap<CallIndex, Vec<(u64, CallIndex)>> = HashMap::new();
        for (index, call) in indices.zip(&placed) {
            if let Some((sent, answer)) = call.sent.zip(call.answer) {
                let of_end = table.of_clients.entry(sent.graph_end()).or_default();
                let [sent_ns, answer_ns] = [sent.row.at_ns, answer.row.at_ns];
                of_end.push(ClientCall { sent_ns, answer_ns, call: index });
            }
            table.servers.extend(call.read.map(|read| read.graph_end()));
            for message in [call.sent, call.answer].into_iter().flatten() {
                table
                    .of_messages
                    .insert(message.id, MessageRole { call: index, is_servers: false });
            }
            for message in [call.read, call.done].into_iter().flatten() {
                table.of_messages.insert(message.id, MessageRole { call: index, is_servers: true });
            }
            if let Some(read) = call.read {
                let done_ns = call.done.map_or(u64::MAX, |done| done.row.at_ns);
                let open = OpenRequest { read_ns: read.row.at_ns, done_ns, call: index };
                table.read_by.entry(read.graph_thread()).or_default().push(open);
            }
            let parent = call.made_for.filter(|parent| {
                let server = placed.get(parent.0 as usize).and_then(|parent| parent.read);
                let both = server.zip(call.sent);
                both.is_some_and(|(server, sent)| is_of_server(&server, &sent, traces))
            });
            table.calls[index.0 as usize].made_for = parent;
            if let Some(parent) = parent {
                let answer_ns = call.answer.map_or(u64::MAX, |answer| answer.row.at_ns);
                made_for.entry(parent).or_default().push((answer_ns, index));
            }
        }
        for calls in table.of_clients.values_mut() {
            calls.sort_unstable();
        }
        for requests in table.read_by.values_mut() {
            requests.sort_unstable();
        }
        let in_order = made_for.into_iter().map(|(parent, mut calls)| {
            calls.sort_unstable();
            (parent, calls.into_iter().map(|(_, call)| call).collect())
        });
        table.made_for = in_order.collect();
        table
    }

    /// Returns a known call with its rows. Sides whose rows contradict each other are left out.
    pub(crate) fn call(&self, index: CallIndex, traces: &[TraceGraph]) -> Option<FollowedCall> {
        let call = self.calls.get(index.0 as usize)?;
        let side = |id: Option<GraphMessageId>, is_received: bool| {
            placed(id?, traces).filter(|message| message.row.is_received == is_received)
        };
        let sent = side(call.sent, false);
        let is_of_client = |answer: &PlacedMessage| {
            sent.is_some_and(|sent| {
                sent.id.trace == answer.id.trace && sent.row.at_ns < answer.row.at_ns
            })
        };
        let served = ServerSide { read: side(call.read, true), done: side(call.done, false) };
        let ServerSide { read, done } = served.in_order();
        Some(FollowedCall {
            known: Some(index),
            made_for: call.made_for,
            sent,
            read,
            done,
            answer: side(call.answer, true).filter(is_of_client),
            address: call.address,
        })
    }

    /// Returns the calls that were made for a call by the service that read it, in the order of answers.
    pub(crate) fn made_for(&self, call: CallIndex) -> &[CallIndex] {
        self.made_for.get(&call).map_or(&[], Vec::as_slice)
    }

    /// Returns the call that a message begins or ends, if it is a known one.
    pub(crate) fn role_of(&self, message: GraphMessageId) -> Option<MessageRole> {
        self.of_messages.get(&message).copied()
    }

    /// Returns the call that a call was made for, if that is known.
    pub(crate) fn parent_of(&self, call: CallIndex) -> Option<CallIndex> {
        self.calls.get(call.0 as usize)?.made_for
    }

    /// Returns the only request that a thread has read and not answered at a time.
    pub(crate) fn only_open(&self, thread: GraphThread, at_ns: u64) -> Option<CallIndex> {
        let mut open = self.open_at(thread, at_ns);
        let only = open.next()?;
        open.next().is_none().then_some(only)
    }

    /// Returns the requests that a thread has read and not answered at a time.
    pub(crate) fn open_at(
        &self,
        thread: GraphThread,
        at_ns: u64,
    ) -> impl Iterator<Item = CallIndex> {
        let requests = self.read_by.get(&thread).map_or(&[][..], Vec::as_slice);
        let next = requests.partition_point(|request| request.read_ns <= at_ns);
        let before = requests[..next].iter().rev().take(MAX_OPEN_REQUESTS);
        before.filter(move |request| at_ns <= request.done_ns).map(|request| request.call)
    }

    /// Returns the call whose answer a receive is part of: a known one, else the last send on the end before it. A
    /// server receives requests, which answer nothing.
    pub(crate) fn answered_by(
        &self,
        message: &PlacedMessage,
        traces: &[TraceGraph],
    ) -> Option<FollowedCall> {
        let end = message.graph_end();
        let at_ns = message.row.at_ns;
        let calls = self.of_clients.get(&end).map_or(&[][..], Vec::as_slice);
        let next = calls.partition_point(|call| call.sent_ns < at_ns);
        let last = next.checked_sub(1).and_then(|last| calls.get(last));
        if let Some(call) = last.filter(|call| at_ns <= call.answer_ns) {
            return self.call(call.call, traces);
        }
        if self.servers.contains(&end) {
            return None;
        }
        let trace = traces.get(end.trace.0 as usize)?;
        let id = GraphMessageId { trace: end.trace, message: trace.last_send(end.end, at_ns)? };
        let sent = placed(id, traces)?;
        let other = |one: &PlacedMessage| placed(one.row.other?, traces);
        let served = ServerSide { read: other(&sent), done: other(message) };
        let ServerSide { read, done } = served.in_order();
        Some(FollowedCall {
            known: None,
            made_for: None,
            sent: Some(sent),
            read,
            done,
            answer: Some(*message),
            address: None,
        })
    }
}

/// Returns a message with its row.
pub(crate) fn placed(id: GraphMessageId, traces: &[TraceGraph]) -> Option<PlacedMessage> {
    let row = *traces.get(id.trace.0 as usize)?.message(id.message)?;
    Some(PlacedMessage { id, row })
}

/// A call's messages at its server.
#[derive(Debug, Clone, Copy)]
struct ServerSide {
    read: Option<PlacedMessage>,
    done: Option<PlacedMessage>,
}

impl ServerSide {
    /// Returns neither if both contradict each other: they are of two calls that crossed on their way.
    fn in_order(self) -> Self {
        let is_one_call = |(read, done): (PlacedMessage, PlacedMessage)| {
            let is_in_order = read.id.trace == done.id.trace && read.row.at_ns <= done.row.at_ns;
            is_in_order && read.row.is_received && !done.row.is_received
        };
        match self.read.zip(self.done) {
            Some(both) if !is_one_call(both) => Self { read: None, done: None },
            _ => self,
        }
    }
}

/// Returns whether the service that read a request also sent a call. Evidence by effect takes others' calls for it,
/// such as a client's next request.
fn is_of_server(server: &PlacedMessage, sent: &PlacedMessage, traces: &[TraceGraph]) -> bool {
    let trace = traces.get(server.id.trace.0 as usize);
    server.id.trace == sent.id.trace
        && trace.is_some_and(|trace| trace.is_same_service(server.row.thread, sent.row.thread))
}
