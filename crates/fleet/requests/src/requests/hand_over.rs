//! For which request each call was made: all evidence, the best first.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use luc_fleet_clocks::HostId;

use super::backward::backward;
use super::exchange::Part;
use super::forward::{Span, forward};
use super::loops::Loops;
use super::others::Others;
use super::readers::Readers;
use super::roles::Role;
use super::timeline::{Kind, Place, Timeline};
use super::{HandOver, Outgoing, Requests, fifo, in_turn, queue, regular};
use crate::rows::{End, EndId, Message};
use crate::waits::Waits;

/// The share of calls of which wake-ups and effects say the same, from which on wake-ups are believed alone.
const WAKE_UPS_AGREE: f64 = 0.98;

/// The calls of each process of a host, in the order in which they were sent.
struct ByProcess {
    /// Of processes whose threads work for what they have read last.
    by_threads: Vec<Vec<usize>>,
    of_loops: Vec<Vec<usize>>,
}

impl Requests {
    /// Notes what each call was made for, host by host. `rows` are in the order of ends, so that those of a host follow each
    /// other.
    pub(super) fn hand_over(
        &mut self,
        waits: &Waits,
        rows: &[&Message],
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
        let mut part_of = &part_of[..];
        for rows in rows.chunk_by(|a, b| a.host == b.host) {
            let (parts, rest) = part_of.split_at(rows.len());
            part_of = rest;
            let host = rows[0].host;
            let has_all_waits = has_all_waits(host);
            let of_host = waits.host(host).filter(|_| has_all_waits);
            let timeline = Timeline::new(of_host, rows, parts, has_all_waits);
            let calls = self.calls_of(host);
            let by_process = self.hand_over_on_host(&timeline, (&spans, by_id), &mut causes, calls);
            let waits = has_all_waits.then_some(waits);
            for calls in by_process.by_threads {
                self.hand_over_by_order(&calls, &spans, &received, waits);
            }
            for calls in by_process.of_loops {
                self.hand_over_in_turn(&calls, &spans, &received);
            }
        }
    }

    /// The numbers of the calls that a host sent: they are in the order of ends.
    fn calls_of(&self, host: HostId) -> Range<usize> {
        let host_of = |outgoing: &Outgoing| outgoing.exchange.end.host;
        let first = self.outgoing.partition_point(|one| host_of(one) < host);
        first..self.outgoing.partition_point(|one| host_of(one) <= host)
    }

    /// Notes causes that have the same name in their bytes, if the process has one such request open. Others on the host
    /// may have the name, too: those that its calls are.
    fn hand_over_by_token(&mut self, spans: &[Span]) {
        let mut named: HashMap<(HostId, u32, u64), Vec<usize>> = HashMap::new();
        for (at, incoming) in self.incoming.iter().enumerate() {
            if let Some(token) = incoming.exchange.token {
                let asked = incoming.exchange.asked;
                let of_process = named.entry((asked.host, asked.process, token));
                of_process.or_default().push(at);
            }
        }
        for outgoing in &mut self.outgoing {
            let asked = outgoing.exchange.asked;
            let all = outgoing
                .exchange
                .token
                .and_then(|token| named.get(&(asked.host, asked.process, token)));
            let mut open =
                all.into_iter().flatten().filter(|&&request| spans[request].contains(asked.at_ns));
            if let (Some(&request), None) = (open.next(), open.next()) {
                outgoing.cause = Some((request, HandOver::Token));
            }
        }
    }

    /// Notes the causes of a host's calls, the best evidence first. Returns the calls of which others may tell more.
    fn hand_over_on_host(
        &mut self,
        timeline: &Timeline,
        (spans, by_id): (&[Span], &BTreeMap<EndId, End>),
        causes: &mut [Option<usize>],
        calls: Range<usize>,
    ) -> ByProcess {
        let known = forward(timeline, spans, causes);
        let (by_effect, usual_rounds) = backward(timeline, spans, &known);
        let exchange = |request: usize| self.incoming[request].exchange;
        let loops = Loops::new(timeline, &known, exchange);
        let sent = |call: usize| self.outgoing[call].exchange;
        let server = |call: usize| Some(by_id.get(&sent(call).end)?.remote);
        let readers = Readers::new(timeline, spans, &known, (sent, calls));
        let asked = timeline.events.iter().filter_map(|event| match event.kind {
            Kind::Asks(call) => Some(call),
            _ => None,
        });
        let asked: Vec<usize> = asked.collect();
        let others = Others::new(&readers, causes, &asked, sent, server);
        let found = others.found.iter().map(|(call, _)| call);
        for &call in found.chain(&others.in_doubt) {
            // What its thread has read does not tell.
            causes[call] = None;
        }
        let mut calls: Vec<(usize, Option<usize>)> = Vec::new();
        let mut of_loops: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (event, before) in timeline.events.iter().zip(&known) {
            if let Kind::Asks(call) = event.kind {
                let process = self.outgoing[call].exchange.asked.process;
                if !loops.follows_what_it_reads(process) {
                    of_loops.entry(process).or_default().push(call);
                    continue;
                }
                // A thread that makes more rounds of calls than it usually does may have begun another task.
                let woken_for =
                    before.woken_for.filter(|&(_, rounds)| rounds <= usual_rounds[event.thread]);
                calls.push((call, woken_for.map(|(request, _)| request)));
                self.note(call, causes[call], HandOver::SameThread);
            }
        }
        // What the sender has done next is no result of a call that may be another one's.
        let mut by_effect = readers.believed(by_effect);
        by_effect.retain(|(call, _)| others.in_doubt.binary_search(call).is_err());
        for (call, request) in others.found.into_iter().chain(readers.found()).chain(by_effect) {
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
        ByProcess {
            by_threads: by_process.into_values().collect(),
            of_loops: of_loops.into_values().collect(),
        }
    }

    /// Notes what the calls of a process were made for, which are in the order in which they were sent, by what is known
    /// of others.
    fn hand_over_by_order(
        &mut self,
        calls: &[usize],
        spans: &[Span],
        received: &HashMap<(HostId, u32), Vec<usize>>,
        waits: Option<&Waits>,
    ) {
        let requests = self.requests_of(calls, received);
        let told = regular::told(&self.regular(calls), requests, spans);
        for place in told.doubted {
            self.outgoing[calls[place]].cause = None;
        }
        if !told.is_contradictory {
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
        if let (Some(waits), Some(each)) = (waits, regular::each(calls.len(), requests.len())) {
            let host = self.outgoing[calls[0]].exchange.end.host;
            let tasks = self.tasks(calls, requests, spans);
            for (place, rank) in fifo::told(host, waits, &tasks.0, &tasks.1, each) {
                self.note(calls[place], Some(requests[rank]), HandOver::Queue);
            }
        }
    }

    /// Notes what the calls of a process were made for that makes them in the order of its requests.
    fn hand_over_in_turn(
        &mut self,
        calls: &[usize],
        spans: &[Span],
        received: &HashMap<(HostId, u32), Vec<usize>>,
    ) {
        let requests = self.requests_of(calls, received);
        let Some(each) = regular::each(calls.len(), requests.len()) else {
            return;
        };
        let of_requests: Vec<Span> = requests.iter().map(|&request| spans[request]).collect();
        for (place, rank) in in_turn::told(&self.regular(calls), &of_requests, each) {
            self.note(calls[place], Some(requests[rank]), HandOver::Queue);
        }
    }

    /// The requests that the process has received whose calls these are.
    fn requests_of<'r>(
        &self,
        calls: &[usize],
        received: &'r HashMap<(HostId, u32), Vec<usize>>,
    ) -> &'r [usize] {
        let asked = self.outgoing[calls[0]].exchange.asked;
        let requests = received.get(&(asked.host, asked.process));
        requests.map_or(&[][..], Vec::as_slice)
    }

    /// The calls and the requests of a process for which tasks may have been in a queue.
    fn tasks(
        &self,
        calls: &[usize],
        requests: &[usize],
        spans: &[Span],
    ) -> (Vec<fifo::Call>, Vec<fifo::Request>) {
        let ranks: HashMap<usize, usize> = requests.iter().copied().zip(0..).collect();
        let with_times = calls.iter().zip(self.regular(calls));
        let calls = with_times.map(|(&number, times)| {
            let exchange = self.outgoing[number].exchange;
            fifo::Call {
                thread: exchange.asked.thread,
                asked_ns: times.asked_ns,
                answered_ns: times.answered_ns,
                is_first: exchange.first_byte == 0,
                cause: times.cause.and_then(|(cause, _)| ranks.get(&cause).copied()),
                is_heard: times.cause.is_some_and(|(_, by)| by == HandOver::Backward),
            }
        });
        let requests = requests.iter().map(|&number| {
            let exchange = self.incoming[number].exchange;
            fifo::Request {
                thread: exchange.asked.thread,
                span: spans[number],
                is_first: exchange.first_byte == 0,
            }
        });
        (calls.collect(), requests.collect())
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
