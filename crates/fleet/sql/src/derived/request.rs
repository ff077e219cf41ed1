//! `fleet.request`: requests, as their ends have seen them.

use super::columns::{Column, Columns, signed};

pub(super) fn columns() -> Vec<Column> {
    Columns::of(|found| &found.requests)
        .number("id", "The request's number.", |request| request.id)
        .number_or_none(
            "parent",
            "Of one that was received, the same request as its client has sent it. Of one \
             that was sent, the received one that it was made for.",
            |request| request.parent,
        )
        .number("root", "The one at the top of its tree.", |request| request.root)
        .number(
            "pre",
            "Its number in pre-order. All below it, and itself, have those from pre to last.",
            |request| request.pre,
        )
        .number("last", "The greatest number in pre-order of all below it.", |request| request.last)
        .number("post", "Its number in post-order.", |request| request.post)
        .number_or_none(
            "number",
            "Its number as luc fleet explain --request takes it: 1 is the slowest. Only \
             of answered ones without a parent.",
            |request| request.number,
        )
        .flag("is_sent", "Whether this end has sent it; else it has received it.", |request| {
            request.is_sent
        })
        .host("host", "The host of this end.", |request| request.host)
        .number("process", "The process' id.", |request| request.process)
        .number("thread", "The thread that sent or read its first bytes.", |request| request.thread)
        .count("connection", "The connection's number in the host's trace.", |request| {
            request.connection
        })
        .text("local", "This end's address.", |request| &request.local)
        .text("remote", "The other end's address.", |request| &request.remote)
        .count("bytes", "How many bytes it has.", |request| request.bytes)
        .time(
            "start_ns",
            "When its first bytes were sent or read, on the host's clock.",
            |request| request.start_ns,
        )
        .time_or_none(
            "end_ns",
            "When the last bytes of the answer were read or sent; missing without an answer.",
            |request| request.end_ns.map(signed),
        )
        .time_or_none("time_ns", "From start to end.", |request| {
            Some(signed(request.end_ns?.saturating_sub(request.start_ns)))
        })
        .time_or_none("start_global_ns", "The start on the first host's clock.", |request| {
            request.start_global_ns
        })
        .text_or_none(
            "evidence",
            "What says that it was made for its parent, of one that was sent.",
            |request| request.evidence,
        )
        .finish()
}
