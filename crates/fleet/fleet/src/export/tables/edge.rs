//! Table `edge`: sends and receptions that share bytes.

use crate::export::derived_table::{DerivedCell, DerivedColumn, DerivedTable, host_name, signed};
use crate::flat_rows::FlatEdge;

pub(in crate::export) const EDGE: DerivedTable<FlatEdge> = DerivedTable {
    name: "edge",
    about: "A send and a reception that have bytes in common.",
    columns: || {
        vec![
            DerivedColumn::of(
                "from_host",
                "Sender's host.",
                DerivedCell::Text(|edge, hosts| host_name(edge.from.host, hosts)),
            ),
            DerivedColumn::of(
                "from_process",
                "Sender's process id.",
                DerivedCell::U32(|edge| Some(edge.from.process)),
            ),
            DerivedColumn::of(
                "from_thread",
                "Sender's thread id.",
                DerivedCell::U32(|edge| Some(edge.from.thread)),
            ),
            DerivedColumn::of(
                "from_connection",
                "Number of the connection in the sender's trace.",
                DerivedCell::I64(|edge| Some(edge.from.connection.cast_signed())),
            ),
            DerivedColumn::of(
                "from_ns",
                "Begin of the call that sent the bytes, on the sender's clock.",
                DerivedCell::I64(|edge| Some(signed(edge.from.at_ns))),
            ),
            DerivedColumn::or_null(
                "from_global_ns",
                "The same on the first host's clock.",
                DerivedCell::I64(|edge| edge.from.global_ns),
            ),
            DerivedColumn::of(
                "to_host",
                "Receiver's host.",
                DerivedCell::Text(|edge, hosts| host_name(edge.to.host, hosts)),
            ),
            DerivedColumn::of(
                "to_process",
                "Receiver's process id.",
                DerivedCell::U32(|edge| Some(edge.to.process)),
            ),
            DerivedColumn::of(
                "to_thread",
                "Receiver's thread id.",
                DerivedCell::U32(|edge| Some(edge.to.thread)),
            ),
            DerivedColumn::of(
                "to_connection",
                "Number of the connection in the receiver's trace.",
                DerivedCell::I64(|edge| Some(edge.to.connection.cast_signed())),
            ),
            DerivedColumn::of(
                "to_ns",
                "Time at which the receiver had copied the bytes, on its clock.",
                DerivedCell::I64(|edge| Some(signed(edge.to.at_ns))),
            ),
            DerivedColumn::or_null(
                "to_global_ns",
                "The same on the first host's clock.",
                DerivedCell::I64(|edge| edge.to.global_ns),
            ),
            DerivedColumn::of(
                "first_byte",
                "First of the bytes, as the sender's table message counts them.",
                DerivedCell::I64(|edge| Some(edge.first_byte.cast_signed())),
            ),
            DerivedColumn::of(
                "bytes",
                "Number of bytes that the send and the reception have in common.",
                DerivedCell::I64(|edge| Some(signed(edge.bytes))),
            ),
            DerivedColumn::or_null(
                "latency_ns",
                "Time from the send to the reception.",
                DerivedCell::I64(|edge| edge.latency_ns),
            ),
            DerivedColumn::or_null(
                "low_ns",
                "Guaranteed lower bound of the latency.",
                DerivedCell::I64(|edge| edge.low_ns),
            ),
            DerivedColumn::or_null(
                "high_ns",
                "Guaranteed upper bound of the latency.",
                DerivedCell::I64(|edge| edge.high_ns),
            ),
        ]
    },
};
