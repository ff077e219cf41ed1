//! Requests of the hosts as calls of the graph.

use luc_fleet_requests::{ByteDirection, Exchange, MessageSide, Requests};
use luc_waits::{CallIndex, GraphCall, GraphMessageId, WaitLabels};

use super::graph_messages::HostMessages;
use crate::joined_traces::JoinedTraces;

/// Calls by the nodes of the forest of requests: all received ones, then all sent ones.
#[derive(Debug, Default)]
pub(super) struct NodeCalls {
    calls: Vec<GraphCall>,
    of_nodes: Vec<CallIndex>,
}

/// First message of an exchange, and the last of its answer.
#[derive(Debug, Clone, Copy)]
struct ExchangeMessages {
    asked: Option<GraphMessageId>,
    answered: Option<GraphMessageId>,
}

impl NodeCalls {
    /// Makes one call of both sides of a request.
    pub(super) fn new(
        joined: &JoinedTraces,
        requests: &Requests,
        hosts: &[HostMessages<'_>],
        labels: &mut WaitLabels,
    ) -> Self {
        let mut found = Self::default();
        // 1. What servers received. Each has one call.
        for incoming in &requests.incoming {
            let side = messages(hosts, &incoming.exchange, ByteDirection::Received);
            let call = GraphCall { read: side.asked, done: side.answered, ..GraphCall::default() };
            found.add_node(call);
        }
        // 2. What clients sent: a call of its own only if no server received it.
        for outgoing in &requests.outgoing {
            let side = messages(hosts, &outgoing.exchange, ByteDirection::Sent);
            let address = joined.end_address(outgoing.exchange.end, |end| end.remote);
            let made_for = outgoing.cause.and_then(|cause| found.of_incoming(cause.request.0));
            let sent = GraphCall {
                sent: side.asked,
                answer: side.answered,
                made_for,
                address: Some(labels.index(&address)),
                ..GraphCall::default()
            };
            let received = outgoing.to.and_then(|to| found.of_incoming(to.0));
            match received.and_then(|call| Some((call, found.calls.get_mut(call.0 as usize)?))) {
                Some((index, call)) if call.sent.is_none() => {
                    *call = GraphCall { read: call.read, done: call.done, ..sent };
                    found.of_nodes.push(index);
                }
                _ => found.add_node(sent),
            }
        }
        found
    }

    pub(super) fn calls(&self) -> Vec<GraphCall> {
        self.calls.clone()
    }

    /// Returns the call of a node.
    pub(super) fn of_node(&self, node: u32) -> Option<CallIndex> {
        self.of_nodes.get(node as usize).copied()
    }

    fn of_incoming(&self, at: usize) -> Option<CallIndex> {
        self.of_nodes.get(at).copied()
    }

    fn add_node(&mut self, call: GraphCall) {
        // The graph refuses more than 2^32 calls.
        self.of_nodes.push(CallIndex(self.calls.len() as u32));
        self.calls.push(call);
    }
}

/// Finds the messages of one side of a request.
fn messages(
    hosts: &[HostMessages<'_>],
    exchange: &Exchange,
    asks: ByteDirection,
) -> ExchangeMessages {
    let answers = match asks {
        ByteDirection::Sent => ByteDirection::Received,
        ByteDirection::Received => ByteDirection::Sent,
    };
    let host = hosts.get(exchange.end.host.0 as usize);
    let find = |side: MessageSide, way| host.and_then(|host| host.find(exchange.end, &side, way));
    ExchangeMessages {
        asked: find(exchange.asked, asks),
        answered: exchange.answer.and_then(|answer| find(answer.last, answers)),
    }
}
