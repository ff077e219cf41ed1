//! Which request a request belongs to, within hosts and across them.

mod backward;
mod exchange;
mod forward;
mod loops;
mod queue;
mod readers;
mod regular;
mod roles;
mod shared;
mod timeline;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use luc_fleet_clocks::HostId;

use crate::connections::Connections;
use crate::rows::{End, EndId, Message, Wait, Way};
use crate::tree::TreeError;
pub use exchange::{Answer, Exchange};
use exchange::{Exchanges, Part};
use forward::Span;
use loops::Loops;
use readers::Readers;
use roles::Role;
use shared::Bounds;
use timeline::{Kind, Place, Timeline};

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
    /// Others that were sent just before and just after it belong to the request, and the queue keeps the order.
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

/// The share of calls of which wake-ups and effects say the same, from which on wake-ups are believed alone.
const WAKE_UPS_AGREE: f64 = 0.98;

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
    rows: &[Message],
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
        let closed_ns = by_id.get(&id).and_then(|end| end.closed_ns);
        match roles.get(&id) {
            Some(Role::Server) => {
                let first = incoming.all.len();
                incoming.add(rows, places, Way::Received, closed_ns);
                let numbers = first..incoming.all.len();
                if incoming.are_mixed(numbers.clone(), |shape, _| shape.is_answered_by_several) {
                    incoming.doubt(numbers.clone());
                }
                received.insert(id, numbers);
            }
            Some(Role::Client) => clients.push((id, places, closed_ns)),
            None => {}
        }
    }
    let ends = connections.places();
    for (id, places, closed_ns) in clients {
        let of_end = &rows[places.clone()];
        // Where threads share a connection, only the server knows which answer is to whom.
        let of_server = shared::is_shared(of_end, Way::Sent).then(|| {
            let &(pair, side) = ends.get(&id)?;
            let pair = &connections.pairs[pair];
            let numbers = received.get(&pair.ends[1 - side])?.clone();
            let shifts = [pair.shifts[side], pair.shifts[1 - side]];
            let bounds: Option<Vec<Bounds>> = numbers
                .clone()
                .map(|number| incoming.bounds(number, shifts))
                .collect();
            bounds.map(|bounds| (numbers, bounds))
        });
        let of_server = of_server
            .flatten()
            .filter(|(_, bounds)| shared::are_begins(bounds, of_end, Way::Sent));
        let Some((numbers, bounds)) = of_server else {
            outgoing.add(rows, places, Way::Sent, closed_ns);
            continue;
        };
        let first = outgoing.all.len();
        let of_each = outgoing.add_within(rows, places, Way::Sent, closed_ns, &bounds);
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
        waits: &[Wait],
        has_all_waits: impl Fn(HostId) -> bool,
    ) -> Self {
        let (roles, by_id) = roles::roles(ends, connections);
        let mut found = Self {
            without_role: by_id
                .keys()
                .filter(|end| !roles.contains_key(end))
                .copied()
                .collect(),
            ..Self::default()
        };
        let mut rows: Vec<Message> = messages
            .iter()
            .filter(|row| row.bytes > 0)
            .copied()
            .collect();
        // What is received comes before what is sent at the same time: an answer before the next request.
        let order = |row: &Message| {
            (
                row.end(),
                row.at_ns,
                row.way == Way::Sent,
                row.first_byte,
                *row,
            )
        };
        rows.sort_unstable_by_key(order);
        rows.dedup();
        let (incoming, outgoing) = exchanges(&rows, &roles, &by_id, connections);
        let plain = |exchange| Incoming {
            exchange,
            from: None,
        };
        found.incoming = incoming.all.iter().copied().map(plain).collect();
        let plain = |exchange| Outgoing {
            exchange,
            cause: None,
            to: None,
        };
        found.outgoing = outgoing.all.iter().copied().map(plain).collect();
        found.link(connections);
        let waits: Vec<Wait> = waits
            .iter()
            .filter(|wait| has_all_waits(wait.host))
            .copied()
            .collect();
        found.hand_over(
            &waits,
            &rows,
            [incoming.parts, outgoing.parts],
            &by_id,
            has_all_waits,
        );
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

    fn hand_over(
        &mut self,
        waits: &[Wait],
        rows: &[Message],
        parts: [Vec<(usize, usize, Part)>; 2],
        by_id: &BTreeMap<EndId, End>,
        has_all_waits: impl Fn(HostId) -> bool,
    ) {
        let mut part_of: Vec<Option<Place>> = vec![None; rows.len()];
        for (parts, role) in parts.into_iter().zip([Role::Server, Role::Client]) {
            for (row, exchange, part) in parts {
                part_of[row] = Some((role, exchange, part));
            }
        }
        let mut hosts: BTreeMap<HostId, (Vec<Wait>, Vec<_>)> = BTreeMap::new();
        for &wait in waits {
            hosts.entry(wait.host).or_default().0.push(wait);
        }
        for (&row, part) in rows.iter().zip(part_of) {
            hosts.entry(row.host).or_default().1.push((row, part));
        }
        let spans: Vec<Span> = self
            .incoming
            .iter()
            .map(|incoming| Span {
                opened_ns: incoming.exchange.asked.at_ns,
                sure_until_ns: incoming.exchange.sure_until_ns,
            })
            .collect();
        self.hand_over_by_token(&spans);
        // What each call was made for by the thread that sent it; each is of one host.
        let mut causes = vec![None; self.outgoing.len()];
        let received = self.received();
        for (host, (waits, rows)) in hosts {
            let timeline = Timeline::new(&waits, &rows, has_all_waits(host));
            self.hand_over_on_host(&timeline, (&spans, by_id), &received, &mut causes);
        }
    }

    /// Notes causes that have the same name in their bytes, if one such request is open on the host.
    fn hand_over_by_token(&mut self, spans: &[Span]) {
        let mut named: HashMap<(HostId, u64), Vec<usize>> = HashMap::new();
        for (at, incoming) in self.incoming.iter().enumerate() {
            if let Some(token) = incoming.exchange.token {
                named
                    .entry((incoming.exchange.end.host, token))
                    .or_default()
                    .push(at);
            }
        }
        for outgoing in &mut self.outgoing {
            let exchange = &outgoing.exchange;
            let all = exchange
                .token
                .and_then(|token| named.get(&(exchange.end.host, token)));
            let mut open = all
                .into_iter()
                .flatten()
                .filter(|&&request| spans[request].contains(exchange.asked.at_ns));
            if let (Some(&request), None) = (open.next(), open.next()) {
                outgoing.cause = Some((request, HandOver::Token));
            }
        }
    }

    /// Notes causes, the best evidence first.
    fn hand_over_on_host(
        &mut self,
        timeline: &Timeline,
        (spans, by_id): (&[Span], &BTreeMap<EndId, End>),
        received: &HashMap<(HostId, u32), Vec<usize>>,
        causes: &mut [Option<usize>],
    ) {
        let known = forward::forward(timeline, spans, causes);
        let (by_effect, usual_rounds) = backward::backward(timeline, spans, &known);
        let exchange = |request: usize| self.incoming[request].exchange;
        let loops = Loops::new(timeline, &known, exchange);
        let sent = |call: usize| self.outgoing[call].exchange;
        let server = |call: usize| Some(by_id.get(&sent(call).end)?.remote);
        let readers = Readers::new(timeline, spans, &known, (sent, causes.len()));
        let asked = timeline.events.iter().filter_map(|event| match event.kind {
            Kind::Asks(call) => Some(call),
            _ => None,
        });
        let asked: Vec<usize> = asked.collect();
        let of_others = readers.of_others(causes, &asked, sent, server);
        for &(call, request) in &of_others {
            causes[call] = Some(request);
        }
        let of_others: BTreeSet<usize> = of_others.into_iter().map(|(call, _)| call).collect();
        let mut calls: Vec<(usize, Option<usize>)> = Vec::new();
        for (event, before) in timeline.events.iter().zip(&known) {
            if let Kind::Asks(call) = event.kind {
                let process = self.outgoing[call].exchange.asked.process;
                if !loops.follows_what_it_reads(process) {
                    continue;
                }
                // A thread that makes more rounds of calls than it usually does may have begun another task.
                let woken_for = before
                    .woken_for
                    .filter(|&(_, rounds)| rounds <= usual_rounds[event.thread]);
                calls.push((call, woken_for.map(|(request, _)| request)));
                if !of_others.contains(&call) {
                    self.note(call, causes[call], HandOver::SameThread);
                }
            }
        }
        let by_effect = readers.believed(by_effect);
        for (call, request) in readers.found().chain(by_effect) {
            let process = self.outgoing[call].exchange.asked.process;
            if loops.follows_what_it_reads(process) {
                self.note(call, Some(request), HandOver::Backward);
            }
        }
        // Where wake-ups contradict the effects, they tell nothing of the calls without an effect either.
        let (mut both, mut same) = (0, 0);
        for &(call, woken_for) in &calls {
            if let (Some((cause, HandOver::Backward)), Some(request)) =
                (self.outgoing[call].cause, woken_for)
            {
                both += 1;
                same += usize::from(cause == request);
            }
        }
        if same as f64 >= WAKE_UPS_AGREE * both as f64 {
            for &(call, woken_for) in &calls {
                self.note(call, woken_for, HandOver::Forward);
            }
        }
        let mut by_process: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for &(call, _) in &calls {
            let process = self.outgoing[call].exchange.asked.process;
            by_process.entry(process).or_default().push(call);
        }
        for calls in by_process.into_values() {
            self.hand_over_by_order(&calls, spans, received);
        }
    }

    /// Notes what the calls of a process were made for, which are in the order in which they were sent, by what is known
    /// of others.
    fn hand_over_by_order(
        &mut self,
        calls: &[usize],
        spans: &[Span],
        received: &HashMap<(HostId, u32), Vec<usize>>,
    ) {
        let asked = self.outgoing[calls[0]].exchange.asked;
        let requests = received.get(&(asked.host, asked.process));
        let requests = requests.map_or(&[][..], Vec::as_slice);
        let told = regular::told(&self.regular(calls), requests, spans);
        for place in told.doubted {
            self.outgoing[calls[place]].cause = None;
        }
        if told.is_contradictory {
            return;
        }
        let causes: Vec<Option<usize>> = calls
            .iter()
            .map(|&call| self.outgoing[call].cause.map(|(cause, _)| cause))
            .collect();
        for (place, request, evidence) in told.found {
            self.note(calls[place], Some(request), evidence);
        }
        for (place, request) in queue::between(&causes) {
            let call = calls[place];
            let is_open = spans[request].contains(self.outgoing[call].exchange.asked.at_ns);
            self.note(call, is_open.then_some(request), HandOver::Queue);
        }
    }

    fn regular(&self, calls: &[usize]) -> Vec<regular::Call> {
        let of_call = |&call: &usize| {
            let outgoing = &self.outgoing[call];
            let asked_ns = outgoing.exchange.asked.at_ns;
            let answer = outgoing.exchange.answer;
            regular::Call {
                asked_ns,
                answered_ns: answer.map_or(asked_ns, |answer| answer.last.at_ns),
                cause: outgoing.cause,
            }
        };
        calls.iter().map(of_call).collect()
    }

    /// The requests that each process has received, in order.
    fn received(&self) -> HashMap<(HostId, u32), Vec<usize>> {
        let mut order: Vec<usize> = (0..self.incoming.len()).collect();
        order.sort_by_key(|&number| self.incoming[number].exchange.asked.at_ns);
        let mut received: HashMap<(HostId, u32), Vec<usize>> = HashMap::new();
        for number in order {
            let asked = self.incoming[number].exchange.asked;
            let of_process = received.entry((asked.host, asked.process));
            of_process.or_default().push(number);
        }
        received
    }

    /// Notes what a call was made for, if nothing better is known.
    fn note(&mut self, call: usize, request: Option<usize>, evidence: HandOver) {
        if self.outgoing[call].exchange.is_of_several {
            return;
        }
        if let Some(request) = request {
            self.outgoing[call].cause.get_or_insert((request, evidence));
        }
    }
}
