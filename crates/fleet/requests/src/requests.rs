//! Requests and calls of hosts, and the request that each call was made for, within hosts and across them.

mod answer_readers;
mod calls_for_others;
mod calls_in_read_order;
mod causes_by_effect;
mod end_roles;
mod equal_call_counts;
mod event_loops;
mod exchange;
mod follow_threads;
mod hand_over;
mod host_timeline;
mod ids;
mod neighbouring_calls;
mod shared_connection;
mod task_queue_causes;

use std::collections::HashMap;
use std::ops::Range;

use luc_fleet_clocks::HostId;

use crate::connections::Connections;
use crate::fleet_waits::FleetWaits;
use crate::host_rows::{ByteDirection, ConnectionEnd, EndAddress, EndId, MessageRow};
use crate::numbered_forest::TreeError;
use end_roles::{EndRole, KnownEnds};
pub use exchange::{Exchange, ExchangeAnswer};
use exchange::{ExchangeId, Exchanges};
pub use ids::{CallCause, CallId, RequestId};
use shared_connection::ExchangeBytes;

/// Evidence that a call belongs to a request, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HandOver {
    /// Both carry the same token in their bytes.
    Token,
    /// One thread read the request and sent the call.
    SameThread,
    /// The thread that sent the call then woke the thread that has the request, or wrote the answer. Or another thread
    /// read the call's answer, and the thread that has the request was woken for that.
    Backward,
    /// The thread that sent the call was idle before, and was woken by a thread that worked for the request.
    Forward,
    /// Order of a queue. The calls sent just before and just after it belong to the request. Or nearly all orders
    /// agree in which tasks can have been put and taken. Or the process makes its calls in the order of its requests.
    Queue,
    /// Each request makes the same number of calls. No other request that was open meanwhile lacks one. Or no other
    /// call may be the one that the request lacks.
    Exclusion,
}

/// A request that a host has received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incoming {
    /// The request as its end saw it.
    pub exchange: Exchange,
    /// The same request at the client, if the client's host has a trace.
    pub from: Option<CallId>,
}

/// A request that a host has sent: a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    /// The call as its end saw it.
    pub exchange: Exchange,
    /// `None`: not known, or made for no request.
    pub cause: Option<CallCause>,
    /// The same call at the server, if the server's host has a trace.
    pub to: Option<RequestId>,
}

/// The requests of many hosts, and their relations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// In order of ends and bytes.
    pub incoming: Vec<Incoming>,
    /// In order of ends and bytes.
    pub outgoing: Vec<Outgoing>,
    /// Ends that may ask or answer; which one is not known.
    pub without_role: Vec<EndId>,
}

/// Exchanges that servers received, and those that clients sent.
#[derive(Debug, Default)]
struct AllExchanges {
    incoming: Exchanges,
    outgoing: Exchanges,
}

/// Finds the exchanges of all ends. `rows` are in the order of ends.
fn find_exchanges(
    rows: &[&MessageRow],
    known: &KnownEnds,
    connections: &Connections,
) -> AllExchanges {
    let AllExchanges { mut incoming, mut outgoing } = AllExchanges::default();
    // 1. Servers' exchanges, and the rows of each client.
    let mut received: HashMap<EndId, Range<usize>> = HashMap::new();
    let mut clients: Vec<(EndId, Range<usize>)> = Vec::new();
    let end_of = |id: EndId| known.by_id.get(&id);
    let closed_ns = |id: EndId| end_of(id)?.closed_ns;
    let without_fin = |id: EndId, of_end: Range<usize>, asks| {
        let has_fin = end_of(id).is_none_or(|end| !end.local.is_within_host());
        if has_fin { exchange::without_fin(rows, of_end, asks) } else { of_end }
    };
    let mut next = 0;
    for rows_of_end in rows.chunk_by(|a, b| a.end() == b.end()) {
        let of_end = next..next + rows_of_end.len();
        next = of_end.end;
        let id = rows_of_end[0].end();
        match known.roles.get(&id) {
            Some(EndRole::Server) => {
                let first = incoming.all.len();
                let of_end = without_fin(id, of_end, ByteDirection::Received);
                incoming.add(rows, of_end, ByteDirection::Received, closed_ns(id));
                let exchanges = first..incoming.all.len();
                if incoming.are_mixed(exchanges.clone(), |shape, _| shape.is_answered_by_several) {
                    incoming.doubt(exchanges.clone());
                }
                received.insert(id, exchanges);
            }
            Some(EndRole::Client) => clients.push((id, of_end)),
            None => {}
        }
    }
    // 2. Clients' exchanges.
    let places = connections.places();
    for (id, of_end) in clients {
        let rows_of_end = &rows[of_end.clone()];
        let of_end = without_fin(id, of_end, ByteDirection::Sent);
        // Where threads share a connection, only the server knows the request of each answer.
        let of_server = shared_connection::is_shared(rows_of_end, ByteDirection::Sent).then(|| {
            let place = places.get(&id)?;
            let pair = &connections.pairs[place.pair];
            let exchanges = received.get(&pair.ends[place.other_side()])?.clone();
            let shifts = [pair.shifts[place.side], pair.shifts[place.other_side()]];
            let bytes = exchanges.clone().map(|at| incoming.bytes_at_peer(ExchangeId(at), shifts));
            Some((exchanges, bytes.collect::<Option<Vec<ExchangeBytes>>>()?))
        });
        let of_server = of_server.flatten().filter(|(_, bytes)| {
            shared_connection::are_begins(bytes, rows_of_end, ByteDirection::Sent)
        });
        let Some((exchanges, bytes)) = of_server else {
            outgoing.add(rows, of_end, ByteDirection::Sent, closed_ns(id));
            continue;
        };
        let first = outgoing.all.len();
        let sent = outgoing.add_within(rows, of_end, ByteDirection::Sent, closed_ns(id), &bytes);
        let is_several = |at: usize| {
            let sent = sent.get(at).copied().flatten();
            sent.is_some_and(|sent| outgoing.all[sent.0].is_of_several)
        };
        if incoming.are_mixed(exchanges.clone(), |_, at| is_several(at)) {
            incoming.doubt(exchanges);
            outgoing.doubt(first..outgoing.all.len());
        }
    }
    incoming.finish();
    outgoing.finish();
    AllExchanges { incoming, outgoing }
}

impl Requests {
    /// Finds requests by direction and order, and the request that each call was made for.
    ///
    /// A request opens when a thread reads the first bytes of a message after having answered. It ends with the
    /// answer on that connection. What is not known is not guessed.
    ///
    /// `has_all_waits` says whether all waits of a host are there, or at least all with a waker. A recorder that sums
    /// brief waits hides results: work of a thread for one request then seems to be for the next one. On these hosts
    /// only answers are effects, and wake-ups are not used.
    #[must_use]
    pub fn find(
        ends: &[ConnectionEnd],
        connections: &Connections,
        messages: &[MessageRow],
        waits: &FleetWaits,
        has_all_waits: impl Fn(HostId) -> bool,
    ) -> Self {
        let known = end_roles::infer_roles(ends, connections);
        let without_role = known.by_id.iter().filter(|(id, end)| {
            !known.roles.contains_key(id) && !matches!(end.local, EndAddress::Pipe(_))
        });
        let without_role = without_role.map(|(id, _)| *id).collect();
        let mut rows: Vec<&MessageRow> = messages.iter().filter(|row| row.bytes > 0).collect();
        // What is received comes before what is sent at the same time: an answer before the next request.
        let order = |row: &&MessageRow| {
            (row.end(), row.at_ns, row.way == ByteDirection::Sent, row.first_byte, **row)
        };
        rows.sort_unstable_by_key(order);
        rows.dedup();
        let AllExchanges { incoming, outgoing } = find_exchanges(&rows, &known, connections);
        let roles = hand_over::roles_of_rows(rows.len(), incoming.rows, outgoing.rows);
        let received = |exchange| Incoming { exchange, from: None };
        let sent = |exchange| Outgoing { exchange, cause: None, to: None };
        let mut found = Self {
            incoming: incoming.all.into_iter().map(received).collect(),
            outgoing: outgoing.all.into_iter().map(sent).collect(),
            without_role,
        };
        found.link(connections);
        found.infer_causes(waits, &rows, &roles, &known.by_id, has_all_waits);
        found
    }

    /// Returns the parent of each request, for a [`NumberedForest`](crate::NumberedForest). First come all incoming
    /// ones, whose parents are the same requests at their clients. Then come all outgoing ones, whose parents are their
    /// causes. A request and all that happened because of it, on any host, is a subtree.
    ///
    /// # Errors
    /// [`TreeError::TooMany`].
    pub fn parents(&self) -> Result<Vec<Option<u32>>, TreeError> {
        let nodes = self.incoming.len() + self.outgoing.len();
        if u32::try_from(nodes).is_err() {
            return Err(TreeError::TooMany(nodes));
        }
        let clients = self
            .incoming
            .iter()
            .map(|incoming| incoming.from.map(|call| (self.incoming.len() + call.0) as u32));
        let causes = self.outgoing.iter().map(|outgoing| outgoing.cause);
        let causes = causes.map(|cause| cause.map(|cause| cause.request.0 as u32));
        Ok(clients.chain(causes).collect())
    }

    /// Links requests with the same ones at their clients, by their first bytes.
    fn link(&mut self, connections: &Connections) {
        let mut sent: HashMap<EndId, Vec<CallId>> = HashMap::new();
        for (call, outgoing) in self.outgoing.iter().enumerate() {
            sent.entry(outgoing.exchange.end).or_default().push(CallId(call));
        }
        let places = connections.places();
        for (request, incoming) in self.incoming.iter_mut().enumerate() {
            let Some(place) = places.get(&incoming.exchange.end) else {
                continue;
            };
            let pair = &connections.pairs[place.pair];
            let client = place.other_side();
            let first = i128::from(incoming.exchange.first_byte) + i128::from(pair.shifts[client]);
            let Some(sent) = sent.get(&pair.ends[client]) else {
                continue;
            };
            // In the order of their bytes, as they were sent.
            let begin_of = |call: CallId| i128::from(self.outgoing[call.0].exchange.first_byte);
            let next = sent.partition_point(|&call| begin_of(call) <= first);
            let Some(&call) = next.checked_sub(1).and_then(|last| sent.get(last)) else {
                continue;
            };
            let begin = begin_of(call);
            let outgoing = &mut self.outgoing[call.0];
            // Bytes that go back in time are of forged rows, and then the search may end anywhere. An exchange that may
            // be several requests is only linked with the first of them.
            let bytes = begin..begin + i128::from(outgoing.exchange.bytes);
            if bytes.contains(&first) && (first == begin || outgoing.exchange.sure_until_ns > 0) {
                incoming.from = Some(call);
                outgoing.to.get_or_insert(RequestId(request));
            }
        }
    }
}
