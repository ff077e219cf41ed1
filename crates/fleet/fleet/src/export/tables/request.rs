//! Tables `request` and `call`: requests as trees, and calls in order.

use std::collections::BTreeMap;

use crate::export::table::{Cell, Column, Table, host_name, signed};
use crate::relations::RequestNode;

/// A request that was sent to serve another one.
pub(in crate::export) struct Call {
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
pub(in crate::export) fn calls(requests: &[RequestNode]) -> Vec<Call> {
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

pub(in crate::export) const REQUEST: Table<RequestNode> = Table {
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
            Column::of(
                "host",
                "Host of this end.",
                Cell::Text(|row, hosts| host_name(row.host, hosts)),
            ),
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

pub(in crate::export) const CALL: Table<Call> = Table {
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
                Cell::Text(|call, hosts| host_name(call.host, hosts)),
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
                Cell::Text(|call, hosts| host_name(call.server_host?, hosts)),
            ),
        ]
    },
};
