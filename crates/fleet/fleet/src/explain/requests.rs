//! Counts requests, and the evidence that links them.

use luc_fleet_requests::{HandOver, Requests};
use serde::Serialize;

use super::forest_nodes::{ProcessKey, servers};
use super::match_program_spans::SpansReport;

/// Counts of requests of all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestsReport {
    /// Requests that hosts received.
    pub incoming: u64,
    pub incoming_answered: u64,
    /// Received requests whose client is in a trace.
    pub incoming_with_client: u64,
    /// Requests that hosts sent.
    pub outgoing: u64,
    pub outgoing_answered: u64,
    /// Sent requests whose server is in a trace.
    pub outgoing_with_server: u64,
    /// Sent requests by the evidence that links them to received ones.
    pub hand_over: HandOverReport,
    /// Ends for which it is unknown whether they ask or answer. Their messages are not requests.
    pub ends_without_role: u64,
    /// Span counts; `None`: no spans were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spans: Option<SpansReport>,
}

/// Sent requests by the evidence that links them to received ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HandOverReport {
    /// Both have the same token in their bytes.
    pub token: u64,
    /// A single thread read the received request and sent the other.
    pub same_thread: u64,
    /// The sending thread then ended a wait of the request's thread, or answered.
    pub backward: u64,
    /// The sending thread was idle, and was woken by a thread that worked for the request.
    pub forward: u64,
    /// Order of neighbours in a queue.
    pub queue: u64,
    /// No other request lacked a call at that time.
    pub exclusion: u64,
    /// Unknown, or made for no request.
    pub unknown: u64,
    /// Requests of processes that received none, so that no cause can be found.
    pub of_clients: u64,
}

impl HandOverReport {
    /// Number of requests that were sent by processes that also receive requests.
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
    let servers = servers(requests);
    let mut hand_over = HandOverReport::default();
    for outgoing in &requests.outgoing {
        *match outgoing.cause.map(|cause| cause.evidence) {
            Some(HandOver::Token) => &mut hand_over.token,
            Some(HandOver::SameThread) => &mut hand_over.same_thread,
            Some(HandOver::Backward) => &mut hand_over.backward,
            Some(HandOver::Forward) => &mut hand_over.forward,
            Some(HandOver::Queue) => &mut hand_over.queue,
            Some(HandOver::Exclusion) => &mut hand_over.exclusion,
            None if servers.contains(&ProcessKey::of(&outgoing.exchange)) => &mut hand_over.unknown,
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
