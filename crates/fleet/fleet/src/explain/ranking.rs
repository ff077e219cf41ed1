//! The requests that are not known to be made for another one, the slowest first.

use luc_fleet_requests::{Exchange, Requests};
use serde::Serialize;

use super::named::{Named, SpanName};
use crate::error::FleetError;
use crate::joined::Joined;

/// A request in the order of their times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ranked {
    /// Its number: 1 is the slowest.
    pub number: usize,
    /// The host whose clock its times are of: the client's, if there is a trace of it.
    pub host: String,
    /// Who asked, or who was asked where the client has no trace.
    pub process: String,
    /// Where it was sent to or received.
    pub address: String,
    /// The thread that asked, or that read its first bytes.
    pub thread: u32,
    /// The connection's number in the host's trace.
    pub connection: u64,
    /// When it began, ns since the host's trace.
    pub began_ns: u64,
    /// From the call that sends its first bytes to the one that reads the last of its answer; where the client has no
    /// trace, the server's own time ([`Service`](crate::explain::Service)).
    pub time_ns: u64,
    /// What a program calls it, if spans were given and one fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<SpanName>,
}

/// A request at the top of a tree.
#[derive(Debug, Clone)]
pub(crate) struct Top {
    /// Its place in [`Requests::parents`].
    pub(super) node: u32,
    pub(super) exchange: Exchange,
    pub(super) ranked: Ranked,
}

impl Top {
    pub(crate) fn node(&self) -> u32 {
        self.node
    }

    pub(crate) fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    pub(crate) fn ranked(&self) -> &Ranked {
        &self.ranked
    }
}

/// All requests that were answered and are not known to be made for another one.
#[derive(Debug)]
pub(super) struct Ranking(Vec<Top>);

impl Ranking {
    pub(super) fn new(joined: &Joined, requests: &Requests, named: &Named<'_>) -> Self {
        let received = requests.incoming.iter().enumerate();
        let received = received.filter(|(_, one)| one.from.is_none());
        let received = received.map(|(node, one)| (node, one.exchange));
        let sent = requests.outgoing.iter().enumerate();
        let sent = sent.filter(|(_, one)| one.cause.is_none());
        let sent = sent.map(|(node, one)| (requests.incoming.len() + node, one.exchange));
        let is_sent = |node: usize| node >= requests.incoming.len();
        let mut tops: Vec<Top> = received
            .chain(sent)
            .filter_map(|(node, exchange)| top(joined, node, exchange, is_sent(node)))
            .collect();
        tops.sort_by_key(|top| (std::cmp::Reverse(top.ranked.time_ns), top.node));
        for (at, top) in tops.iter_mut().enumerate() {
            top.ranked.number = at + 1;
            // What the client wrote, or else the server.
            let sent = (top.node as usize).checked_sub(requests.incoming.len());
            let received = sent.and_then(|sent| requests.outgoing.get(sent)?.to);
            let received = received.and_then(|received| u32::try_from(received.0).ok());
            let span = named.of(top.node);
            top.ranked.span = span.or_else(|| named.of(received?));
        }
        Self(tops)
    }

    /// All of them, the slowest first.
    pub(super) fn all(&self) -> &[Top] {
        &self.0
    }

    /// The request of this number.
    pub(super) fn get(&self, number: usize) -> Result<&Top, FleetError> {
        let found = number.checked_sub(1).and_then(|at| self.0.get(at));
        found.ok_or(FleetError::NoSuchRequest { number, count: self.0.len() })
    }

    pub(super) fn slowest(&self, count: usize) -> Vec<Ranked> {
        let slowest = self.0.iter().take(count);
        slowest.map(|top| top.ranked.clone()).collect()
    }
}

/// `None` without an answer.
fn top(joined: &Joined, node: usize, exchange: Exchange, is_sent: bool) -> Option<Top> {
    let (asked, answer) = (exchange.asked, exchange.answer?);
    let end = joined.ends.get(&exchange.end)?;
    let host = joined.host(end.host);
    let address = if is_sent { end.remote } else { end.local };
    Some(Top {
        node: u32::try_from(node).ok()?,
        exchange,
        ranked: Ranked {
            number: 0,
            host: host.name.clone(),
            process: host.process_name(asked.process, asked.at_ns),
            address: joined.address(address),
            thread: asked.thread.id,
            connection: exchange.end.connection,
            began_ns: asked.at_ns.saturating_sub(host.trace.start_ns),
            time_ns: answer.last.at_ns.saturating_sub(asked.at_ns),
            span: None,
        },
    })
}
