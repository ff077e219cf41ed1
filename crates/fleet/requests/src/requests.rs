//! Which request a request belongs to, within hosts and across them.

mod backward;
mod exchange;
mod fifo;
mod forward;
mod hand_over;
mod in_turn;
mod loops;
mod others;
mod queue;
mod readers;
mod regular;
mod roles;
mod shared;
mod timeline;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use luc_fleet_clocks::HostId;

use crate::connections::Connections;
use crate::rows::{Address, End, EndId, Message, Way};
use crate::tree::TreeError;
use crate::waits::Waits;
use exchange::Exchanges;
pub use exchange::{Answer, Exchange};
use roles::Role;
use shared::Bounds;

/// What says for which request another one was made, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HandOver {
    /// Both carry the same name in their bytes.
    Token,
    /// One thread read the one and sent the other.
    SameThread,
    /// The thread that sent it had an effect afterwards: it ended the wait of a thread with the request, or wrote the
    /// answer. Or another thread read the answer to it, and then such a wait was ended.
    Backward,
    /// The thread that sent it was idle before, and was woken by a thread that worked for the request.
    Forward,
    /// The order of a queue: others that were sent just before and just after it belong to the request; or it is so in
    /// nearly all orders in which tasks can have been put and taken; or the process makes its calls in the order of its
    /// requests.
    Queue,
    /// Each request makes the same number of calls, and no other request that was open meanwhile lacks one, or no other
    /// call may be the one that the request lacks.
    Exclusion,
}

/// A request that a host has received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incoming {
    /// What its end has seen of it.
    pub exchange: Exchange,
    /// The number of the outgoing request that it is, if the client's host has a trace.
    pub from: Option<usize>,
}

/// A request that a host has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    /// What its end has seen of it.
    pub exchange: Exchange,
    /// The number of the incoming request that it was made for, and what says so; `None`: not known, or for none.
    pub cause: Option<(usize, HandOver)>,
    /// The number of the incoming request that it is, if the server's host has a trace.
    pub to: Option<usize>,
}

/// The requests of many hosts, and how they belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// All that were received, in order of ends and bytes.
    pub incoming: Vec<Incoming>,
    /// All that were sent, in the same order.
    pub outgoing: Vec<Outgoing>,
    /// Ends of which it is not known whether they ask or answer.
    pub without_role: Vec<EndId>,
}

/// The exchanges of all ends: what servers received, and what clients sent. `rows` are in the order of ends.
fn exchanges(
    rows: &[&Message],
    roles: &HashMap<EndId, Role>,
    by_id: &BTreeMap<EndId, End>,
    connections: &Connections,
) -> (Exchanges, Exchanges) {
    let (mut incoming, mut outgoing) = (Exchanges::default(), Exchanges::default());
    let mut received: HashMap<EndId, Range<usize>> = HashMap::new();
    let mut clients = Vec::new();
    let mut next = 0;
    for of_end in rows.chunk_by(|a, b| a.end() == b.end()) {
        let places = next..next + of_end.len();
        next = places.end;
        let id = of_end[0].end();
        let end = by_id.get(&id);
        let closed_ns = end.and_then(|end| end.closed_ns);
        let has_fin = end.is_none_or(|end| !end.local.is_within_host());
        let without_fin = |places: Range<usize>, asks| {
            if has_fin { exchange::without_fin(rows, places, asks) } else { places }
        };
        match roles.get(&id) {
            Some(Role::Server) => {
                let first = incoming.all.len();
                let places = without_fin(places, Way::Received);
                incoming.add(rows, places, Way::Received, closed_ns);
                let numbers = first..incoming.all.len();
                if incoming.are_mixed(numbers.clone(), |shape, _| shape.is_answered_by_several) {
                    incoming.doubt(numbers.clone());
                }
                received.insert(id, numbers);
            }
            Some(Role::Client) => {
                let asking = without_fin(places.clone(), Way::Sent);
                clients.push((id, (places, asking), closed_ns));
            }
            None => {}
        }
    }
    let ends = connections.places();
    for (id, (places, asking), closed_ns) in clients {
        let of_end = &rows[places];
        // Where threads share a connection, only the server knows which answer is to whom.
        let of_server = shared::is_shared(of_end, Way::Sent).then(|| {
            let &(pair, side) = ends.get(&id)?;
            let pair = &connections.pairs[pair];
            let numbers = received.get(&pair.ends[1 - side])?.clone();
            let shifts = [pair.shifts[side], pair.shifts[1 - side]];
            let bounds: Option<Vec<Bounds>> =
                numbers.clone().map(|number| incoming.bounds(number, shifts)).collect();
            bounds.map(|bounds| (numbers, bounds))
        });
        let of_server =
            of_server.flatten().filter(|(_, bounds)| shared::are_begins(bounds, of_end, Way::Sent));
        let Some((numbers, bounds)) = of_server else {
            outgoing.add(rows, asking, Way::Sent, closed_ns);
            continue;
        };
        let first = outgoing.all.len();
        let of_each = outgoing.add_within(rows, asking, Way::Sent, closed_ns, &bounds);
        let is_several = |at: usize| {
            let sent = of_each.get(at).copied().flatten();
            sent.is_some_and(|sent| outgoing.all[sent].is_of_several)
        };
        if incoming.are_mixed(numbers.clone(), |_, at| is_several(at)) {
            incoming.doubt(numbers);
            outgoing.doubt(first..outgoing.all.len());
        }
    }
    incoming.finish();
    outgoing.finish();
    (incoming, outgoing)
}

impl Requests {
    /// Finds requests by direction and order, and for each that a host sends the one for which it did.
    ///
    /// A request opens when a thread reads the first bytes of a message after having answered, and ends with the answer
    /// on that connection. What is not known is not guessed.
    ///
    /// `has_all_waits` says of a host whether all its waits are there, or at least all with a waker. A recorder that
    /// sums brief waits hides results, and what a thread did for one request then seems to be for the next one. Of such
    /// a host only answers are effects, and wake-ups tell nothing.
    #[must_use]
    pub fn find(
        ends: &[End],
        connections: &Connections,
        messages: &[Message],
        waits: &Waits,
        has_all_waits: impl Fn(HostId) -> bool,
    ) -> Self {
        let (roles, by_id) = roles::roles(ends, connections);
        let mut found = Self {
            without_role: by_id
                .iter()
                .filter(|(id, end)| {
                    !roles.contains_key(id) && !matches!(end.local, Address::Pipe(_))
                })
                .map(|(id, _)| *id)
                .collect(),
            ..Self::default()
        };
        let mut rows: Vec<&Message> = messages.iter().filter(|row| row.bytes > 0).collect();
        // What is received comes before what is sent at the same time: an answer before the next request.
        let order =
            |row: &&Message| (row.end(), row.at_ns, row.way == Way::Sent, row.first_byte, **row);
        rows.sort_unstable_by_key(order);
        rows.dedup();
        let (incoming, outgoing) = exchanges(&rows, &roles, &by_id, connections);
        let parts = [incoming.parts, outgoing.parts];
        let plain = |exchange| Incoming { exchange, from: None };
        found.incoming = incoming.all.into_iter().map(plain).collect();
        let plain = |exchange| Outgoing { exchange, cause: None, to: None };
        found.outgoing = outgoing.all.into_iter().map(plain).collect();
        found.link(connections);
        found.hand_over(waits, &rows, parts, &by_id, has_all_waits);
        found
    }

    /// The parent of each request, for a [`Forest`](crate::Forest): first all incoming ones, whose parents are the
    /// outgoing ones that they are; then all outgoing ones, whose parents are their causes. A request and all that
    /// happened because of it, on any host, is a subtree.
    ///
    /// # Errors
    /// [`TreeError::TooMany`].
    pub fn parents(&self) -> Result<Vec<Option<u32>>, TreeError> {
        let nodes = self.incoming.len() + self.outgoing.len();
        if u32::try_from(nodes).is_err() {
            return Err(TreeError::TooMany(nodes));
        }
        let from = self.incoming.iter().map(|incoming| incoming.from);
        let from = from.map(|from| from.map(|from| (self.incoming.len() + from) as u32));
        let causes = self.outgoing.iter().map(|outgoing| outgoing.cause);
        let causes = causes.map(|cause| cause.map(|(request, _)| request as u32));
        Ok(from.chain(causes).collect())
    }

    /// Finds which incoming and which outgoing are one: the incoming one's first byte is the outgoing one's.
    fn link(&mut self, connections: &Connections) {
        let mut sent: HashMap<EndId, Vec<usize>> = HashMap::new();
        for (at, outgoing) in self.outgoing.iter().enumerate() {
            sent.entry(outgoing.exchange.end).or_default().push(at);
        }
        let places = connections.places();
        for (at, incoming) in self.incoming.iter_mut().enumerate() {
            let Some(&(pair, side)) = places.get(&incoming.exchange.end) else {
                continue;
            };
            let pair = &connections.pairs[pair];
            let first =
                i128::from(incoming.exchange.first_byte) + i128::from(pair.shifts[1 - side]);
            let Some(sent) = sent.get(&pair.ends[1 - side]) else {
                continue;
            };
            // In the order of their bytes, as they were sent.
            let next = sent
                .partition_point(|&at| i128::from(self.outgoing[at].exchange.first_byte) <= first);
            let Some(&found) = next.checked_sub(1).and_then(|last| sent.get(last)) else {
                continue;
            };
            let outgoing = &mut self.outgoing[found];
            let begin = i128::from(outgoing.exchange.first_byte);
            // Bytes that go back in time are of forged rows, and then the search may end anywhere. What may be several
            // requests is only the first of them.
            let bytes = begin..begin + i128::from(outgoing.exchange.bytes);
            if bytes.contains(&first) && (first == begin || outgoing.exchange.sure_until_ns > 0) {
                incoming.from = Some(found);
                outgoing.to.get_or_insert(at);
            }
        }
    }
}
