//! Table `edge`: sends and receptions that share bytes.

use crate::export::table::{Cell, Column, Table, host_name, signed};
use crate::relations::Edge;

pub(in crate::export) const EDGE: Table<Edge> = Table {
    name: "edge",
    about: "A send and a reception that have bytes in common.",
    columns: || {
        vec![
            Column::of(
                "from_host",
                "Sender's host.",
                Cell::Text(|edge, hosts| host_name(edge.from.host, hosts)),
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
                Cell::Text(|edge, hosts| host_name(edge.to.host, hosts)),
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
