//! Requests as nodes of a forest: all received requests, then all sent ones, as [`Requests::parents`] numbers them.

use std::collections::BTreeSet;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{Exchange, HandOver, Requests};

/// Request as one of its ends saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ForestNode<'r> {
    pub(crate) id: u32,
    pub(crate) exchange: &'r Exchange,
    /// Whether a client sent it; otherwise a server received it.
    pub(crate) is_sent: bool,
    /// Whether it is not known to be made for another one.
    pub(crate) is_top: bool,
    /// Evidence that a sent request was made for a received one.
    pub(crate) evidence: Option<&'static str>,
}

/// Iterates over all requests in order of their node numbers.
pub(crate) fn nodes(requests: &Requests) -> impl Iterator<Item = ForestNode<'_>> {
    let received = requests.incoming.iter().map(|one| ForestNode {
        id: 0,
        exchange: &one.exchange,
        is_sent: false,
        is_top: one.from.is_none(),
        evidence: None,
    });
    let sent = requests.outgoing.iter().map(|one| ForestNode {
        id: 0,
        exchange: &one.exchange,
        is_sent: true,
        is_top: one.cause.is_none(),
        evidence: one.cause.map(|cause| evidence(cause.evidence)),
    });
    received.chain(sent).zip(0..).map(|(node, id)| ForestNode { id, ..node })
}

/// Process of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessKey {
    pub(crate) host: HostId,
    pub(crate) id: u32,
}

impl ProcessKey {
    /// Process that sent or received a request.
    pub(crate) fn of(exchange: &Exchange) -> Self {
        Self { host: exchange.asked.host, id: exchange.asked.process }
    }
}

/// Finds the processes that received requests.
pub(super) fn servers(requests: &Requests) -> BTreeSet<ProcessKey> {
    requests.incoming.iter().map(|incoming| ProcessKey::of(&incoming.exchange)).collect()
}

/// Time from a request's first bytes to the last of its answer, ns; `None` without an answer.
pub(crate) fn time_ns(exchange: &Exchange) -> Option<u64> {
    Some(exchange.answer?.last.at_ns.saturating_sub(exchange.asked.at_ns))
}

/// Returns the words for a kind of evidence.
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
