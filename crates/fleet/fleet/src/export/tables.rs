//! Derived tables: their rows and their columns.

use std::collections::BTreeMap;

use super::table::{AnyTable, Cell, Column, Table};
use crate::explain::Findings;
use crate::joined::Joined;
use crate::relations::{ClockLine, Edge, HostClock, PathStep, RequestNode};

/// A host, and where its clock's lines lie.
pub(super) struct HostRow {
    number: u32,
    kernel: String,
    directory: String,
    clock: HostClock,
}

pub(super) fn hosts(joined: &Joined, clocks: &[HostClock]) -> Vec<HostRow> {
    let rows = joined.hosts.iter().zip(clocks).zip(0..);
    rows.map(|((host, &clock), number)| HostRow {
        number,
        kernel: host.summary.kernel.clone(),
        directory: host.summary.directory.clone(),
        clock,
    })
    .collect()
}

/// A request that was sent to serve another one.
pub(super) struct Call {
    id: u32,
    request: u32,
    /// From 1, in the order of sending.
    number: u32,
    evidence: Option<&'static str>,
    host: u32,
    thread: u32,
    /// From the request's beginning to the call's.
    since_request_ns: u64,
    start_ns: u64,
    end_ns: Option<u64>,
    /// The same call as its server has received it.
    received: Option<u32>,
    server_host: Option<u32>,
}

/// Calls of all received requests, by request and time.
pub(super) fn calls(requests: &[RequestNode]) -> Vec<Call> {
    let mut received: BTreeMap<u32, &RequestNode> = BTreeMap::new();
    for request in requests.iter().filter(|request| !request.is_sent) {
        received.extend(request.parent.map(|sent| (sent, request)));
    }
    let sent = requests.iter().filter(|request| request.is_sent);
    let mut calls: Vec<Call> = sent
        .filter_map(|call| {
            let request = requests.get(call.parent? as usize)?;
            let server = received.get(&call.id);
            Some(Call {
                id: call.id,
                request: request.id,
                number: 0,
                evidence: call.evidence,
                host: call.host,
                thread: call.thread,
                since_request_ns: call.start_ns.saturating_sub(request.start_ns),
                start_ns: call.start_ns,
                end_ns: call.end_ns,
                received: server.map(|server| server.id),
                server_host: server.map(|server| server.host),
            })
        })
        .collect();
    calls.sort_unstable_by_key(|call| (call.request, call.start_ns, call.id));
    for calls in calls.chunk_by_mut(|first, second| first.request == second.request) {
        for (call, number) in calls.iter_mut().zip(1..) {
            call.number = number;
        }
    }
    calls
}

/// A finding about the slowest requests to an address.
pub(super) struct FindingRow {
    address: String,
    rank: u32,
    requests: u64,
    finding: crate::explain::Finding,
}

pub(super) fn findings(all: Vec<Findings>) -> Vec<FindingRow> {
    let rows = all.into_iter().flat_map(|findings| {
        let (address, requests) = (findings.address, findings.slowest.requests);
        findings.findings.into_iter().zip(1..).map(move |(finding, rank)| FindingRow {
            address: address.clone(),
            rank,
            requests,
            finding,
        })
    });
    rows.collect()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) const HOST: Table<HostRow> = Table {
    name: "host",
    about: "A host whose trace was read. Its clock is known by lines (table `clock`) of `clock_step_ns` each.",
    columns: || {
        vec![
            Column::of("host", "Its name.", Cell::Text(|row, hosts| host(row.number, hosts))),
            Column::of(
                "number",
                "Its number; 0 is the first host.",
                Cell::U32(|row| Some(row.number)),
            ),
            Column::of("kernel", "Release of its kernel.", Cell::Text(|row, _| Some(&row.kernel))),
            Column::of(
                "directory",
                "Directory of its trace.",
                Cell::Text(|row, _| Some(&row.directory)),
            ),
            Column::of(
                "clock_begin_ns",
                "Begin of the trace.",
                Cell::I64(|row| Some(row.clock.begin_ns)),
            ),
            Column::of(
                "clock_end_ns",
                "End of the trace.",
                Cell::I64(|row| Some(row.clock.end_ns)),
            ),
            Column::of(
                "clock_step_ns",
                "Length of a line of its clock.",
                Cell::I64(|row| Some(row.clock.step_ns)),
            ),
        ]
    },
};

pub(super) const CLOCK: Table<ClockLine> = Table {
    name: "clock",
    about: "A straight line from a host's clock to the first host's. A time t between begin_ns and end_ns is \
            global_ns + (t - begin_ns) + growth_ns * (t - begin_ns) / (end_ns - begin_ns) there, rounded towards zero.",
    columns: || {
        vec![
            Column::of("host", "The host.", Cell::Text(|row, hosts| host(row.host, hosts))),
            Column::of(
                "line",
                "Number of the line: (t - clock_begin_ns) / clock_step_ns.",
                Cell::U32(|row| Some(row.line)),
            ),
            Column::of(
                "begin_ns",
                "Time of the host at which the line begins.",
                Cell::I64(|row| Some(row.begin_ns)),
            ),
            Column::of(
                "end_ns",
                "Time of the host at which it ends.",
                Cell::I64(|row| Some(row.end_ns)),
            ),
            Column::of(
                "global_ns",
                "Time of the first host at the line's begin.",
                Cell::I64(|row| Some(row.global_ns)),
            ),
            Column::of(
                "growth_ns",
                "Time that the first host's clock gains along the line.",
                Cell::I64(|row| Some(row.growth_ns)),
            ),
        ]
    },
};

pub(super) const EDGE: Table<Edge> = Table {
    name: "edge",
    about: "A send and a reception that have bytes in common.",
    columns: || {
        vec![
            Column::of(
                "from_host",
                "Sender's host.",
                Cell::Text(|edge, hosts| host(edge.from.host, hosts)),
            ),
            Column::of(
                "from_process",
                "Sender's process id.",
                Cell::U32(|edge| Some(edge.from.process)),
            ),
            Column::of(
                "from_thread",
                "Sender's thread id.",
                Cell::U32(|edge| Some(edge.from.thread)),
            ),
            Column::of(
                "from_connection",
                "Number of the connection in the sender's trace.",
                Cell::I64(|edge| Some(edge.from.connection.cast_signed())),
            ),
            Column::of(
                "from_ns",
                "Begin of the call that sent the bytes, on the sender's clock.",
                Cell::I64(|edge| Some(signed(edge.from.at_ns))),
            ),
            Column::or_null(
                "from_global_ns",
                "The same on the first host's clock.",
                Cell::I64(|edge| edge.from.global_ns),
            ),
            Column::of(
                "to_host",
                "Receiver's host.",
                Cell::Text(|edge, hosts| host(edge.to.host, hosts)),
            ),
            Column::of(
                "to_process",
                "Receiver's process id.",
                Cell::U32(|edge| Some(edge.to.process)),
            ),
            Column::of(
                "to_thread",
                "Receiver's thread id.",
                Cell::U32(|edge| Some(edge.to.thread)),
            ),
            Column::of(
                "to_connection",
                "Number of the connection in the receiver's trace.",
                Cell::I64(|edge| Some(edge.to.connection.cast_signed())),
            ),
            Column::of(
                "to_ns",
                "Time at which the receiver had copied the bytes, on its clock.",
                Cell::I64(|edge| Some(signed(edge.to.at_ns))),
            ),
            Column::or_null(
                "to_global_ns",
                "The same on the first host's clock.",
                Cell::I64(|edge| edge.to.global_ns),
            ),
            Column::of(
                "first_byte",
                "First of the bytes, as the sender's table message counts them.",
                Cell::I64(|edge| Some(edge.first_byte.cast_signed())),
            ),
            Column::of(
                "bytes",
                "Number of bytes that the send and the reception have in common.",
                Cell::I64(|edge| Some(signed(edge.bytes))),
            ),
            Column::or_null(
                "latency_ns",
                "Time from the send to the reception.",
                Cell::I64(|edge| edge.latency_ns),
            ),
            Column::or_null(
                "low_ns",
                "Guaranteed lower bound of the latency.",
                Cell::I64(|edge| edge.low_ns),
            ),
            Column::or_null(
                "high_ns",
                "Guaranteed upper bound of the latency.",
                Cell::I64(|edge| edge.high_ns),
            ),
        ]
    },
};

pub(super) const REQUEST: Table<RequestNode> = Table {
    name: "request",
    about: "A request, as one of its ends has seen it. Requests form trees: a received one is below the same request as its client \
            has sent it, a sent one below the received one that it was made for.",
    columns: || {
        vec![
            Column::of("id", "Number of the request.", Cell::U32(|row| Some(row.id))),
            Column::or_null("parent", "Id of the request above it.", Cell::U32(|row| row.parent)),
            Column::of(
                "root",
                "Id of the request at the top of its tree.",
                Cell::U32(|row| Some(row.root)),
            ),
            Column::of(
                "pre",
                "Number in pre-order. The request and all below it have numbers from pre to last.",
                Cell::U32(|row| Some(row.pre)),
            ),
            Column::of(
                "last",
                "Greatest number in pre-order below it.",
                Cell::U32(|row| Some(row.last)),
            ),
            Column::of("post", "Number in post-order.", Cell::U32(|row| Some(row.post))),
            Column::or_null(
                "number",
                "Number as luc fleet explain --request takes it: 1 is the slowest. Null where it has no answer, or a parent.",
                Cell::U32(|row| row.number),
            ),
            Column::of(
                "is_sent",
                "True if this end has sent it, false if it has received it.",
                Cell::Flag(|row| Some(row.is_sent)),
            ),
            Column::of("host", "Host of this end.", Cell::Text(|row, hosts| host(row.host, hosts))),
            Column::of("process", "Process id.", Cell::U32(|row| Some(row.process))),
            Column::of(
                "thread",
                "Thread that sent or read its first bytes.",
                Cell::U32(|row| Some(row.thread)),
            ),
            Column::of(
                "connection",
                "Number of the connection in the host's trace.",
                Cell::I64(|row| Some(row.connection.cast_signed())),
            ),
            Column::of("local", "Address of this end.", Cell::Text(|row, _| Some(&row.local))),
            Column::of(
                "remote",
                "Address of the other end.",
                Cell::Text(|row, _| Some(&row.remote)),
            ),
            Column::of("bytes", "Number of its bytes.", Cell::I64(|row| Some(signed(row.bytes)))),
            Column::of(
                "start_ns",
                "Time at which its first bytes were sent or read, on the host's clock.",
                Cell::I64(|row| Some(signed(row.start_ns))),
            ),
            Column::or_null(
                "end_ns",
                "Time at which the last bytes of the answer were read or sent. Null without an answer.",
                Cell::I64(|row| row.end_ns.map(signed)),
            ),
            Column::or_null(
                "time_ns",
                "Time from start to end.",
                Cell::I64(|row| Some(signed(row.end_ns?.saturating_sub(row.start_ns)))),
            ),
            Column::or_null(
                "start_global_ns",
                "The start on the first host's clock.",
                Cell::I64(|row| row.start_global_ns),
            ),
            Column::or_null(
                "evidence",
                "Evidence that it was made for its parent, of a sent one.",
                Cell::Text(|row, _| row.evidence),
            ),
        ]
    },
};

pub(super) const CALL: Table<Call> = Table {
    name: "call",
    about: "A request that a server sent to serve another one.",
    columns: || {
        vec![
            Column::of("id", "Id of the sent request.", Cell::U32(|call| Some(call.id))),
            Column::of(
                "request",
                "Id of the received request that it was made for.",
                Cell::U32(|call| Some(call.request)),
            ),
            Column::of(
                "number",
                "Number among the calls of that request, from 1, in the order of sending.",
                Cell::U32(|call| Some(call.number)),
            ),
            Column::or_null(
                "evidence",
                "Evidence that it was made for that request.",
                Cell::Text(|call, _| call.evidence),
            ),
            Column::of(
                "host",
                "Host that sent it.",
                Cell::Text(|call, hosts| host(call.host, hosts)),
            ),
            Column::of("thread", "Thread that sent it.", Cell::U32(|call| Some(call.thread))),
            Column::of(
                "since_request_ns",
                "Time from the request's start to the call's.",
                Cell::I64(|call| Some(signed(call.since_request_ns))),
            ),
            Column::of(
                "start_ns",
                "Start, on the host's clock.",
                Cell::I64(|call| Some(signed(call.start_ns))),
            ),
            Column::or_null(
                "time_ns",
                "Time until the answer was read. Null without an answer.",
                Cell::I64(|call| Some(signed(call.end_ns?.saturating_sub(call.start_ns)))),
            ),
            Column::or_null(
                "received",
                "Id of the same request as its server has received it.",
                Cell::U32(|call| call.received),
            ),
            Column::or_null(
                "server_host",
                "Host of that server.",
                Cell::Text(|call, hosts| host(call.server_host?, hosts)),
            ),
        ]
    },
};

pub(super) const PATH: Table<PathStep> = Table {
    name: "path",
    about: "A part of the critical path of an answered request without a parent. The parts of a request sum to its time exactly.",
    columns: || {
        vec![
            Column::of("request", "Id of the request.", Cell::U32(|step| Some(step.request))),
            Column::of(
                "step",
                "Place of the part on the path, from 0.",
                Cell::U32(|step| Some(step.step)),
            ),
            Column::of(
                "part",
                "One of running, runnable, blocked, network and contradictory.",
                Cell::Text(|step, _| Some(step.part)),
            ),
            Column::of(
                "host",
                "Host whose time it was.",
                Cell::Text(|step, hosts| host(step.host, hosts)),
            ),
            Column::or_null("process", "Process id.", Cell::U32(|step| step.process)),
            Column::of("thread", "Thread id.", Cell::U32(|step| Some(step.thread))),
            Column::of("name", "Name of the thread.", Cell::Text(|step, _| Some(&step.name))),
            Column::or_null(
                "cause",
                "Cause of a wait, as the table trace_wait names it.",
                Cell::Text(|step, _| step.cause),
            ),
            Column::or_null(
                "from_host",
                "Sender's host of a message.",
                Cell::Text(|step, hosts| host(step.from_host?, hosts)),
            ),
            Column::or_null(
                "from_thread",
                "Sender's thread of a message.",
                Cell::U32(|step| step.from_thread),
            ),
            Column::of(
                "start_ns",
                "Begin, on the clock of the host that has the request.",
                Cell::I64(|step| Some(signed(step.start_ns))),
            ),
            Column::of(
                "end_ns",
                "End, on the same clock.",
                Cell::I64(|step| Some(signed(step.end_ns))),
            ),
            Column::of(
                "time_ns",
                "Time from start to end.",
                Cell::I64(|step| Some(signed(step.end_ns.saturating_sub(step.start_ns)))),
            ),
            Column::or_null(
                "error_ns",
                "Largest error of start and end, by what is known of the clocks. Null: not bounded.",
                Cell::I64(|step| step.error_ns.map(signed)),
            ),
        ]
    },
};

pub(super) const FINDING: Table<FindingRow> = Table {
    name: "finding",
    about: "What a share of the slowest requests' time to an address went into, as luc fleet explain says it.",
    columns: || {
        vec![
            Column::of(
                "address",
                "Address that the requests were sent to.",
                Cell::Text(|row, _| Some(&row.address)),
            ),
            Column::of(
                "rank",
                "Rank of the finding for this address, from 1.",
                Cell::U32(|row| Some(row.rank)),
            ),
            Column::of(
                "text",
                "The finding in words.",
                Cell::Text(|row, _| Some(&row.finding.text)),
            ),
            Column::of(
                "kind",
                "Kind, as in the JSON of luc fleet explain.",
                Cell::Text(|row, _| Some(row.finding.kind)),
            ),
            Column::of(
                "host",
                "Host whose time it is.",
                Cell::Text(|row, _| Some(&row.finding.who.host)),
            ),
            Column::of(
                "process",
                "Name of the process.",
                Cell::Text(|row, _| Some(&row.finding.who.process)),
            ),
            Column::or_null(
                "process_id",
                "Id of the process.",
                Cell::U32(|row| row.finding.who.process_id),
            ),
            Column::of(
                "name",
                "Name of the threads, without numbers.",
                Cell::Text(|row, _| Some(&row.finding.who.name)),
            ),
            Column::or_null(
                "cause",
                "Cause of the wait, as the table trace_wait names it.",
                Cell::Text(|row, _| row.finding.cause),
            ),
            Column::or_null(
                "holder_host",
                "Host of whom it waits for.",
                Cell::Text(|row, _| Some(&row.finding.holder.as_ref()?.host)),
            ),
            Column::or_null(
                "holder_process",
                "Process that it waits for.",
                Cell::Text(|row, _| Some(&row.finding.holder.as_ref()?.process)),
            ),
            Column::or_null(
                "holder_name",
                "Name of the threads that it waits for.",
                Cell::Text(|row, _| Some(&row.finding.holder.as_ref()?.name)),
            ),
            Column::of(
                "slowest",
                "Number of the slowest requests that were looked at.",
                Cell::I64(|row| Some(signed(row.requests))),
            ),
            Column::of(
                "requests",
                "Number of those that have it.",
                Cell::I64(|row| Some(signed(row.finding.requests))),
            ),
            Column::of(
                "time_ns",
                "Time of the slowest requests that it took.",
                Cell::I64(|row| Some(signed(row.finding.time_ns))),
            ),
            Column::of(
                "usual_time_ns",
                "Time of as many usual requests that it took.",
                Cell::I64(|row| Some(signed(row.finding.usual_time_ns))),
            ),
            Column::of(
                "saved_ns",
                "Time by which the slowest requests would be shorter at least without it.",
                Cell::I64(|row| Some(signed(row.finding.saved_ns))),
            ),
            Column::of(
                "share",
                "Share of the slowest requests' time.",
                Cell::F64(|row| Some(row.finding.share)),
            ),
            Column::of(
                "share_low",
                "Lower end of the share's 95 % interval.",
                Cell::F64(|row| Some(row.finding.share_low)),
            ),
            Column::of(
                "share_high",
                "Upper end of it.",
                Cell::F64(|row| Some(row.finding.share_high)),
            ),
        ]
    },
};

fn host(number: u32, hosts: &[String]) -> Option<&str> {
    hosts.get(number as usize).map(String::as_str)
}

/// All derived tables, without their rows' types.
pub(super) fn all() -> [AnyTable; 7] {
    [
        AnyTable::of(&HOST),
        AnyTable::of(&CLOCK),
        AnyTable::of(&EDGE),
        AnyTable::of(&REQUEST),
        AnyTable::of(&CALL),
        AnyTable::of(&PATH),
        AnyTable::of(&FINDING),
    ]
}
