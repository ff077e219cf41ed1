//! How many requests there are, and what says which was made for which.

use std::collections::HashSet;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{HandOver, Requests};
use serde::Serialize;

use super::named::SpansReport;

/// Requests of all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestsReport {
    /// Requests that hosts received.
    pub incoming: u64,
    /// Those of them that were answered.
    pub incoming_answered: u64,
    /// Those whose client is in a trace.
    pub incoming_with_client: u64,
    /// Requests that hosts sent.
    pub outgoing: u64,
    /// Those of them that were answered.
    pub outgoing_answered: u64,
    /// Those whose server is in a trace.
    pub outgoing_with_server: u64,
    /// What says for which request the outgoing ones were made.
    pub hand_over: HandOverReport,
    /// Ends of which it is not known whether they ask or answer: their messages are no requests.
    pub ends_without_role: u64,
    /// Spans that are put to requests; `None`: none were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spans: Option<SpansReport>,
}

/// Outgoing requests by what says for which incoming one they were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HandOverReport {
    /// The same name in the bytes of both.
    pub token: u64,
    /// One thread read the one and sent the other.
    pub same_thread: u64,
    /// The thread that sent it then ended the wait of the request's thread, or answered.
    pub backward: u64,
    /// The thread that sent it was idle, and was woken by one that worked for the request.
    pub forward: u64,
    /// Neighbours in a queue.
    pub queue: u64,
    /// No other request lacked a call.
    pub exclusion: u64,
    /// Not known, or made for none.
    pub unknown: u64,
    /// Of processes that received no request in their traces: they were made for none that could be found.
    pub of_clients: u64,
}

impl HandOverReport {
    /// Those of processes that receive requests as well.
    #[must_use]
    pub fn of_servers(&self) -> u64 {
        self.token
            + self.same_thread
            + self.backward
            + self.forward
            + self.queue
            + self.exclusion
            + self.unknown
    }
}

pub(super) fn report(requests: &Requests, spans: Option<SpansReport>) -> RequestsReport {
    let servers: HashSet<(HostId, u32)> = requests
        .incoming
        .iter()
        .map(|incoming| (incoming.exchange.end.host, incoming.exchange.asked.process))
        .collect();
    let mut hand_over = HandOverReport::default();
    for outgoing in &requests.outgoing {
        let exchange = &outgoing.exchange;
        let process = (exchange.end.host, exchange.asked.process);
        *match outgoing.cause.map(|cause| cause.evidence) {
            Some(HandOver::Token) => &mut hand_over.token,
            Some(HandOver::SameThread) => &mut hand_over.same_thread,
            Some(HandOver::Backward) => &mut hand_over.backward,
            Some(HandOver::Forward) => &mut hand_over.forward,
            Some(HandOver::Queue) => &mut hand_over.queue,
            Some(HandOver::Exclusion) => &mut hand_over.exclusion,
            None if servers.contains(&process) => &mut hand_over.unknown,
            None => &mut hand_over.of_clients,
        } += 1;
    }
    let count = |is_so: &mut dyn Iterator<Item = bool>| is_so.filter(|&is_so| is_so).count() as u64;
    let (incoming, outgoing) = (&requests.incoming, &requests.outgoing);
    RequestsReport {
        incoming: incoming.len() as u64,
        incoming_answered: count(&mut incoming.iter().map(|one| one.exchange.answer.is_some())),
        incoming_with_client: count(&mut incoming.iter().map(|one| one.from.is_some())),
        outgoing: outgoing.len() as u64,
        outgoing_answered: count(&mut outgoing.iter().map(|one| one.exchange.answer.is_some())),
        outgoing_with_server: count(&mut outgoing.iter().map(|one| one.to.is_some())),
        hand_over,
        ends_without_role: requests.without_role.len() as u64,
        spans,
    }
}

/// What says that a request was made for another one, in words.
pub(crate) fn evidence(hand_over: HandOver) -> &'static str {
    match hand_over {
        HandOver::Token => "token",
        HandOver::SameThread => "same thread",
        HandOver::Backward => "effect",
        HandOver::Forward => "wake-up",
        HandOver::Queue => "queue",
        HandOver::Exclusion => "exclusion",
    }
}
