//! Tables `request` and `call`: requests as trees, and calls in order.

use std::collections::BTreeMap;

use crate::export::derived_table::{DerivedCell, DerivedColumn, DerivedTable, host_name, signed};
use crate::flat_rows::RequestNode;

/// A request that was sent to serve another one.
pub(in crate::export) struct SentCallRow {
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
pub(in crate::export) fn calls(requests: &[RequestNode]) -> Vec<SentCallRow> {
    let mut received: BTreeMap<u32, &RequestNode> = BTreeMap::new();
    for request in requests.iter().filter(|request| !request.is_sent) {
        received.extend(request.parent.map(|sent| (sent, request)));
    }
    let sent = requests.iter().filter(|request| request.is_sent);
    let mut calls: Vec<SentCallRow> = sent
        .filter_map(|call| {
            let request = requests.get(call.parent? as usize)?;
            let server = received.get(&call.id);
            Some(SentCallRow {
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

pub(in crate::export) const REQUEST: DerivedTable<RequestNode> = DerivedTable {
    name: "request",
    about: "A request, as one of its ends has seen it. Requests form trees: a received one is below the same request as its client \
            has sent it, a sent one below the received one that it was made for.",
    columns: || {
        vec![
            DerivedColumn::of("id", "Number of the request.", DerivedCell::U32(|row| Some(row.id))),
            DerivedColumn::or_null(
                "parent",
                "Id of the request above it.",
                DerivedCell::U32(|row| row.parent),
            ),
            DerivedColumn::of(
                "root",
                "Id of the request at the top of its tree.",
                DerivedCell::U32(|row| Some(row.root)),
            ),
            DerivedColumn::of(
                "pre",
                "Number in pre-order. The request and all below it have numbers from pre to last.",
                DerivedCell::U32(|row| Some(row.pre)),
            ),
            DerivedColumn::of(
                "last",
                "Greatest number in pre-order below it.",
                DerivedCell::U32(|row| Some(row.last)),
            ),
            DerivedColumn::of(
                "post",
                "Number in post-order.",
                DerivedCell::U32(|row| Some(row.post)),
            ),
            DerivedColumn::or_null(
                "number",
                "Number as luc fleet explain --request takes it: 1 is the slowest. Null where it has no answer, or a parent.",
                DerivedCell::U32(|row| row.number),
            ),
            DerivedColumn::of(
                "is_sent",
                "True if this end has sent it, false if it has received it.",
                DerivedCell::Flag(|row| Some(row.is_sent)),
            ),
            DerivedColumn::of(
                "host",
                "Host of this end.",
                DerivedCell::Text(|row, hosts| host_name(row.host, hosts)),
            ),
            DerivedColumn::of("process", "Process id.", DerivedCell::U32(|row| Some(row.process))),
            DerivedColumn::of(
                "thread",
                "Thread that sent or read its first bytes.",
                DerivedCell::U32(|row| Some(row.thread)),
            ),
            DerivedColumn::of(
                "connection",
                "Number of the connection in the host's trace.",
                DerivedCell::I64(|row| Some(row.connection.cast_signed())),
            ),
            DerivedColumn::of(
                "local",
                "Address of this end.",
                DerivedCell::Text(|row, _| Some(&row.local)),
            ),
            DerivedColumn::of(
                "remote",
                "Address of the other end.",
                DerivedCell::Text(|row, _| Some(&row.remote)),
            ),
            DerivedColumn::of(
                "bytes",
                "Number of its bytes.",
                DerivedCell::I64(|row| Some(signed(row.bytes))),
            ),
            DerivedColumn::of(
                "start_ns",
                "Time at which its first bytes were sent or read, on the host's clock.",
                DerivedCell::I64(|row| Some(signed(row.start_ns))),
            ),
            DerivedColumn::or_null(
                "end_ns",
                "Time at which the last bytes of the answer were read or sent. Null without an answer.",
                DerivedCell::I64(|row| row.end_ns.map(signed)),
            ),
            DerivedColumn::or_null(
                "time_ns",
                "Time from start to end.",
                DerivedCell::I64(|row| Some(signed(row.end_ns?.saturating_sub(row.start_ns)))),
            ),
            DerivedColumn::or_null(
                "start_global_ns",
                "The start on the first host's clock.",
                DerivedCell::I64(|row| row.start_global_ns),
            ),
            DerivedColumn::or_null(
                "evidence",
                "Evidence that it was made for its parent, of a sent one.",
                DerivedCell::Text(|row, _| row.evidence),
            ),
        ]
    },
};

pub(in crate::export) const CALL: DerivedTable<SentCallRow> = DerivedTable {
    name: "call",
    about: "A request that a server sent to serve another one.",
    columns: || {
        vec![
            DerivedColumn::of(
                "id",
                "Id of the sent request.",
                DerivedCell::U32(|call| Some(call.id)),
            ),
            DerivedColumn::of(
                "request",
                "Id of the received request that it was made for.",
                DerivedCell::U32(|call| Some(call.request)),
            ),
            DerivedColumn::of(
                "number",
                "Number among the calls of that request, from 1, in the order of sending.",
                DerivedCell::U32(|call| Some(call.number)),
            ),
            DerivedColumn::or_null(
                "evidence",
                "Evidence that it was made for that request.",
                DerivedCell::Text(|call, _| call.evidence),
            ),
            DerivedColumn::of(
                "host",
                "Host that sent it.",
                DerivedCell::Text(|call, hosts| host_name(call.host, hosts)),
            ),
            DerivedColumn::of(
                "thread",
                "Thread that sent it.",
                DerivedCell::U32(|call| Some(call.thread)),
            ),
            DerivedColumn::of(
                "since_request_ns",
                "Time from the request's start to the call's.",
                DerivedCell::I64(|call| Some(signed(call.since_request_ns))),
            ),
            DerivedColumn::of(
                "start_ns",
                "Start, on the host's clock.",
                DerivedCell::I64(|call| Some(signed(call.start_ns))),
            ),
            DerivedColumn::or_null(
                "time_ns",
                "Time until the answer was read. Null without an answer.",
                DerivedCell::I64(|call| Some(signed(call.end_ns?.saturating_sub(call.start_ns)))),
            ),
            DerivedColumn::or_null(
                "received",
                "Id of the same request as its server has received it.",
                DerivedCell::U32(|call| call.received),
            ),
            DerivedColumn::or_null(
                "server_host",
                "Host of that server.",
                DerivedCell::Text(|call, hosts| host_name(call.server_host?, hosts)),
            ),
        ]
    },
};
