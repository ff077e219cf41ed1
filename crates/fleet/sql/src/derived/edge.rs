//! `fleet.edge`: sends and receptions that have bytes in common.

use super::columns::{Column, Columns};

pub(super) fn columns() -> Vec<Column> {
    Columns::of(|found| &found.edges)
        .text("kind", "What connects the two: message.", |_| "message")
        .host("from_host", "Who sent: the host.", |edge| edge.from.host)
        .number("from_process", "Who sent: the process' id.", |edge| edge.from.process)
        .number("from_thread", "Who sent: the thread's id.", |edge| edge.from.thread)
        .count("from_connection", "The connection's number in the sender's trace.", |edge| {
            edge.from.connection
        })
        .time(
            "from_ns",
            "When the call that sent the bytes began, on the sender's clock.",
            |edge| edge.from.at_ns,
        )
        .time_or_none("from_global_ns", "The same on the first host's clock.", |edge| {
            edge.from.global_ns
        })
        .host("to_host", "Who received: the host.", |edge| edge.to.host)
        .number("to_process", "Who received: the process' id.", |edge| edge.to.process)
        .number("to_thread", "Who received: the thread's id.", |edge| edge.to.thread)
        .count("to_connection", "The connection's number in the receiver's trace.", |edge| {
            edge.to.connection
        })
        .time("to_ns", "When the receiver had copied the bytes, on its clock.", |edge| {
            edge.to.at_ns
        })
        .time_or_none("to_global_ns", "The same on the first host's clock.", |edge| {
            edge.to.global_ns
        })
        .count(
            "first_byte",
            "The first of the bytes, as the sender's table message counts them.",
            |edge| edge.first_byte,
        )
        .count("bytes", "How many bytes the send and the reception have in common.", |edge| {
            edge.bytes
        })
        .time_or_none("latency_ns", "From the send to the reception.", |edge| edge.latency_ns)
        .time_or_none("low_ns", "The latency is guaranteed to be no less.", |edge| edge.low_ns)
        .time_or_none("high_ns", "The latency is guaranteed to be no more.", |edge| edge.high_ns)
        .finish()
}
