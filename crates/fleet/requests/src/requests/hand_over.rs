//! Causes of all calls: evidence of all kinds, the strongest first.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use luc_fleet_clocks::HostId;

use super::answer_readers::AnswerReaders;
use super::calls_for_others::CallsForOthers;
use super::causes_by_effect::follow_backward;
use super::event_loops::EventLoops;
use super::exchange::ExchangeRow;
use super::follow_threads::{RequestSpan, follow_forward};
use super::host_timeline::{HostTimeline, RowRole, ThreadEventKind};
use super::ids::{CallCause, CallId, PredictionScore, RequestId, RequestRank};
use super::{
    HandOver, Outgoing, Requests, calls_in_read_order, equal_call_counts, neighbouring_calls,
    task_queue_causes,
};
use crate::fleet_waits::FleetWaits;
use crate::host_rows::{ConnectionEnd, EndId, MessageRow};
use crate::messages::MessageSide;

/// Trust wake-ups alone if they agree with effects for this share of calls.
const MIN_WAKE_UP_AGREEMENT: f64 = 0.98;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ProcessId {
    host: HostId,
    process: u32,
}

impl ProcessId {
    fn of(side: &MessageSide) -> Self {
        Self { host: side.host, process: side.process }
    }
}

/// The requests that each process has received, in order.
type Received = HashMap<ProcessId, Vec<RequestId>>;

/// A call, and the request of the thread that woke its idle sender.
#[derive(Debug, Clone, Copy)]
struct WokenCall {
    call: CallId,
    woken_for: Option<RequestId>,
}

/// The calls of each process of a host, in send order.
struct CallsByProcess {
    /// Of processes whose threads work for what they read last.
    of_threads: Vec<Vec<CallId>>,
    of_loops: Vec<Vec<CallId>>,
}

/// Returns the exchange of each row, if it belongs to one.
pub(super) fn roles_of_rows(
    rows: usize,
    incoming: Vec<ExchangeRow>,
    outgoing: Vec<ExchangeRow>,
) -> Vec<Option<RowRole>> {
    let mut roles: Vec<Option<RowRole>> = vec![None; rows];
    for ExchangeRow { row, exchange, .. } in incoming {
        roles[row.0] = Some(RowRole::OfRequest(RequestId(exchange.0)));
    }
    for ExchangeRow { row, exchange, is_first } in outgoing {
        let role = if is_first { RowRole::OpensCall } else { RowRole::OfCall };
        roles[row.0] = Some(role(CallId(exchange.0)));
    }
    roles
}

impl Requests {
    /// Notes the cause of each call, host by host. `rows` are in the order of ends, so that those of a host follow each
    /// other.
    pub(super) fn infer_causes(
        &mut self,
        waits: &FleetWaits,
        rows: &[&MessageRow],
        roles: &[Option<RowRole>],
        by_id: &BTreeMap<EndId, ConnectionEnd>,
        has_all_waits: impl Fn(HostId) -> bool,
    ) {
        let spans: Vec<RequestSpan> = self
            .incoming
            .iter()
            .map(|incoming| RequestSpan {
                opened_ns: incoming.exchange.asked.at_ns,
                sure_until_ns: incoming.exchange.sure_until_ns,
            })
            .collect();
        self.note_tokens(&spans);
        // The request that the sender of each call worked for; each call is of one host.
        let mut causes = vec![None; self.outgoing.len()];
        let received = self.received_by_process();
        let mut roles = roles;
        for rows in rows.chunk_by(|a, b| a.host == b.host) {
            let (roles_of_host, rest) = roles.split_at(rows.len());
            roles = rest;
            let host = rows[0].host;
            let has_all_waits = has_all_waits(host);
            let of_host = waits.host(host).filter(|_| has_all_waits);
            let timeline = HostTimeline::new(of_host, rows, roles_of_host, has_all_waits);
            let by_process = self.note_causes_on_host(host, &timeline, &spans, by_id, &mut causes);
            let waits = has_all_waits.then_some(waits);
            for calls in by_process.of_threads {
                self.note_causes_by_order(&calls, &spans, &received, waits);
            }
            for calls in by_process.of_loops {
                self.note_causes_in_turn(&calls, &spans, &received);
            }
        }
    }

    /// Returns the indices of the calls that a host sent: they are in the order of ends.
    fn calls_of(&self, host: HostId) -> Range<usize> {
        let host_of = |outgoing: &Outgoing| outgoing.exchange.end.host;
        let first = self.outgoing.partition_point(|one| host_of(one) < host);
        first..self.outgoing.partition_point(|one| host_of(one) <= host)
    }

    /// Notes causes with the same token in their bytes, if the process has only one of these requests open. Others on
    /// the host may have the token, too: the same requests as their servers received them.
    fn note_tokens(&mut self, spans: &[RequestSpan]) {
        let mut by_token: HashMap<(ProcessId, u64), Vec<RequestId>> = HashMap::new();
        for (request, incoming) in self.incoming.iter().enumerate() {
            if let Some(token) = incoming.exchange.token {
                let process = ProcessId::of(&incoming.exchange.asked);
                by_token.entry((process, token)).or_default().push(RequestId(request));
            }
        }
        for outgoing in &mut self.outgoing {
            let asked = outgoing.exchange.asked;
            let same = outgoing
                .exchange
                .token
                .and_then(|token| by_token.get(&(ProcessId::of(&asked), token)));
            let is_open = |request: &&RequestId| spans[request.0].contains(asked.at_ns);
            let mut open = same.into_iter().flatten().filter(is_open);
            if let (Some(&request), None) = (open.next(), open.next()) {
                outgoing.cause = Some(CallCause { request, evidence: HandOver::Token });
            }
        }
    }

    /// Notes the causes of a host's calls, the strongest evidence first. Returns the calls whose order may tell more.
    fn note_causes_on_host(
        &mut self,
        host: HostId,
        timeline: &HostTimeline,
        spans: &[RequestSpan],
        by_id: &BTreeMap<EndId, ConnectionEnd>,
        causes: &mut [Option<RequestId>],
    ) -> CallsByProcess {
        // 1. The request that each thread works for, by what it read last.
        let contexts = follow_forward(timeline, spans, causes);
        let received = |request: RequestId| self.incoming[request.0].exchange;
        let loops = EventLoops::new(timeline, &contexts, received);
        // 2. Effects of senders.
        let mut by_effect = follow_backward(timeline, spans, &contexts);
        // 3. Wake-ups by the readers of answers, and the calls that these show to be for other requests.
        let sent = |call: CallId| self.outgoing[call.0].exchange;
        let server = |call: CallId| Some(by_id.get(&sent(call).end)?.remote);
        let readers = AnswerReaders::new(timeline, spans, &contexts, self.calls_of(host), sent);
        let asked: Vec<CallId> = timeline
            .events
            .iter()
            .filter_map(|event| match event.kind {
                ThreadEventKind::Asks(call) => Some(call),
                _ => None,
            })
            .collect();
        let others = CallsForOthers::new(&readers, causes, &asked, sent, server);
        for &call in others.found.iter().map(|one| &one.call).chain(&others.in_doubt) {
            // What its thread read last does not tell.
            causes[call.0] = None;
        }
        // 4. Note what threads read last, but not in loops.
        let mut woken: Vec<WokenCall> = Vec::new();
        let mut of_loops: BTreeMap<u32, Vec<CallId>> = BTreeMap::new();
        for (event, context) in timeline.events.iter().zip(&contexts) {
            if let ThreadEventKind::Asks(call) = event.kind {
                let process = self.process_of(call);
                if !loops.follows_what_it_reads(process) {
                    of_loops.entry(process).or_default().push(call);
                    continue;
                }
                // A thread that makes more rounds of calls than it usually does may have begun another task.
                let usual_rounds = by_effect.usual_rounds[event.thread.0];
                let woken_for = context.woken_for.filter(|woken| woken.rounds <= usual_rounds);
                woken.push(WokenCall { call, woken_for: woken_for.map(|woken| woken.request) });
                self.note_cause(call, causes[call.0], HandOver::SameThread);
            }
        }
        // 5. Note what readers and effects say. A sender's next effect is no result of a call that may be another
        //    one's.
        readers.keep_trusted(&mut by_effect.causes);
        by_effect.causes.retain(|one| others.in_doubt.binary_search(&one.call).is_err());
        for one in others.found.into_iter().chain(readers.causes()).chain(by_effect.causes) {
            if loops.follows_what_it_reads(self.process_of(one.call)) {
                self.note_cause(one.call, Some(one.request), HandOver::Backward);
            }
        }
        // 6. Note wake-ups, unless they contradict effects: then they tell nothing of calls without an effect either.
        let mut agreement = PredictionScore::default();
        for &WokenCall { call, woken_for } in &woken {
            if let (Some(CallCause { request, evidence: HandOver::Backward }), Some(woken_for)) =
                (self.outgoing[call.0].cause, woken_for)
            {
                agreement.add(request == woken_for);
            }
        }
        if agreement.reaches(MIN_WAKE_UP_AGREEMENT) {
            for &WokenCall { call, woken_for } in &woken {
                self.note_cause(call, woken_for, HandOver::Forward);
            }
        }
        // 7. Calls by process.
        let mut of_threads: BTreeMap<u32, Vec<CallId>> = BTreeMap::new();
        for one in woken {
            of_threads.entry(self.process_of(one.call)).or_default().push(one.call);
        }
        CallsByProcess {
            of_threads: of_threads.into_values().collect(),
            of_loops: of_loops.into_values().collect(),
        }
    }

    /// Notes causes of the calls of a process, in send order, by what is known of the others.
    fn note_causes_by_order(
        &mut self,
        calls: &[CallId],
        spans: &[RequestSpan],
        received: &Received,
        waits: Option<&FleetWaits>,
    ) {
        let requests = self.requests_of(calls, received);
        let inference = equal_call_counts::infer_causes(&self.timed(calls), requests, spans);
        for position in inference.doubted {
            self.outgoing[calls[position.0].0].cause = None;
        }
        if !inference.is_contradictory {
            let causes: Vec<Option<RequestId>> = calls
                .iter()
                .map(|&call| self.outgoing[call.0].cause.map(|cause| cause.request))
                .collect();
            for one in inference.found {
                let CallCause { request, evidence } = one.cause;
                self.note_cause(calls[one.call.0], Some(request), evidence);
            }
            for one in neighbouring_calls::infer_causes(&causes) {
                let call = calls[one.call.0];
                let asked_ns = self.outgoing[call.0].exchange.asked.at_ns;
                let request = Some(one.request).filter(|one| spans[one.0].contains(asked_ns));
                self.note_cause(call, request, HandOver::Queue);
            }
        }
        let each = equal_call_counts::calls_per_request(calls.len(), requests.len());
        if let (Some(waits), Some(each)) = (waits, each) {
            let host = self.outgoing[calls[0].0].exchange.end.host;
            let takes = self.takes(calls, requests);
            let puts = self.puts(requests, spans);
            for one in task_queue_causes::infer_causes(host, waits, &takes, &puts, each) {
                self.note_cause(calls[one.call.0], Some(requests[one.request.0]), HandOver::Queue);
            }
        }
    }

    /// Notes causes of the calls of a process that may make them in the order of its requests.
    fn note_causes_in_turn(
        &mut self,
        calls: &[CallId],
        spans: &[RequestSpan],
        received: &Received,
    ) {
        let requests = self.requests_of(calls, received);
        let Some(each) = equal_call_counts::calls_per_request(calls.len(), requests.len()) else {
            return;
        };
        let spans: Vec<RequestSpan> = requests.iter().map(|&request| spans[request.0]).collect();
        for one in calls_in_read_order::infer_causes(&self.timed(calls), &spans, each) {
            self.note_cause(calls[one.call.0], Some(requests[one.request.0]), HandOver::Queue);
        }
    }

    fn process_of(&self, call: CallId) -> u32 {
        self.outgoing[call.0].exchange.asked.process
    }

    /// Returns the requests that the process of these calls has received.
    fn requests_of<'r>(&self, calls: &[CallId], received: &'r Received) -> &'r [RequestId] {
        let process = ProcessId::of(&self.outgoing[calls[0].0].exchange.asked);
        received.get(&process).map_or(&[][..], Vec::as_slice)
    }

    /// Returns the calls of a process as tasks that were taken from a queue.
    fn takes(&self, calls: &[CallId], requests: &[RequestId]) -> Vec<task_queue_causes::TakenTask> {
        let ranks: HashMap<RequestId, RequestRank> =
            requests.iter().copied().zip((0..).map(RequestRank)).collect();
        let take = |(&call, times): (&CallId, equal_call_counts::TimedCall)| {
            let exchange = &self.outgoing[call.0].exchange;
            task_queue_causes::TakenTask {
                thread: exchange.asked.thread,
                asked_ns: times.asked_ns,
                answered_ns: times.answered_ns,
                is_first: exchange.first_byte == 0,
                cause: times.cause.and_then(|cause| ranks.get(&cause.request).copied()),
                is_by_effect: times.cause.is_some_and(|cause| cause.evidence == HandOver::Backward),
            }
        };
        calls.iter().zip(self.timed(calls)).map(take).collect()
    }

    /// Returns the requests of a process as tasks that were put into a queue.
    fn puts(
        &self,
        requests: &[RequestId],
        spans: &[RequestSpan],
    ) -> Vec<task_queue_causes::PutTasks> {
        let put = |&request: &RequestId| {
            let exchange = &self.incoming[request.0].exchange;
            task_queue_causes::PutTasks {
                thread: exchange.asked.thread,
                span: spans[request.0],
                is_first: exchange.first_byte == 0,
            }
        };
        requests.iter().map(put).collect()
    }

    fn timed(&self, calls: &[CallId]) -> Vec<equal_call_counts::TimedCall> {
        let timed = |&call: &CallId| {
            let Outgoing { exchange, cause, .. } = self.outgoing[call.0];
            let asked_ns = exchange.asked.at_ns;
            let answered_ns = exchange.answer.map_or(asked_ns, |answer| answer.last.at_ns);
            equal_call_counts::TimedCall { asked_ns, answered_ns, cause }
        };
        calls.iter().map(timed).collect()
    }

    fn received_by_process(&self) -> Received {
        let mut order: Vec<RequestId> = (0..self.incoming.len()).map(RequestId).collect();
        order.sort_by_key(|request| self.incoming[request.0].exchange.asked.at_ns);
        let mut received = Received::new();
        for request in order {
            let process = ProcessId::of(&self.incoming[request.0].exchange.asked);
            received.entry(process).or_default().push(request);
        }
        received
    }

    /// Notes the cause of a call, if nothing better is known.
    fn note_cause(&mut self, call: CallId, request: Option<RequestId>, evidence: HandOver) {
        let outgoing = &mut self.outgoing[call.0];
        if let Some(request) = request
            && !outgoing.exchange.is_of_several
        {
            outgoing.cause.get_or_insert(CallCause { request, evidence });
        }
    }
}
