//! Table `path`: the parts of requests' times.

use crate::export::derived_table::{DerivedCell, DerivedColumn, DerivedTable, host_name, signed};
use crate::flat_rows::PathStep;

pub(in crate::export) const PATH: DerivedTable<PathStep> = DerivedTable {
    name: "path",
    about: "A part of the time of an answered request without a parent, by the root of the waits. The parts of a request sum to its time exactly.",
    columns: || {
        vec![
            DerivedColumn::of(
                "request",
                "Id of the request.",
                DerivedCell::U32(|step| Some(step.request)),
            ),
            DerivedColumn::of(
                "step",
                "Place of the part in the request's time, from 0.",
                DerivedCell::U32(|step| Some(step.step)),
            ),
            DerivedColumn::of(
                "kind",
                "Kind of the root, as in the table finding.",
                DerivedCell::Text(|step, _| Some(step.kind)),
            ),
            DerivedColumn::of(
                "host",
                "Host whose time it was.",
                DerivedCell::Text(|step, hosts| host_name(step.host, hosts)),
            ),
            DerivedColumn::of(
                "service",
                "Service of the thread; the address of a server that no trace has.",
                DerivedCell::Text(|step, _| Some(&step.service)),
            ),
            DerivedColumn::or_null("process", "Process id.", DerivedCell::U32(|step| step.process)),
            DerivedColumn::or_null("thread", "Thread id.", DerivedCell::U32(|step| step.thread)),
            DerivedColumn::of(
                "name",
                "Name of the thread at the end of the chain of waits.",
                DerivedCell::Text(|step, _| Some(&step.name)),
            ),
            DerivedColumn::or_null(
                "cause",
                "Cause of a wait, as the table trace_wait names it.",
                DerivedCell::Text(|step, _| step.cause),
            ),
            DerivedColumn::or_null(
                "from_host",
                "Sender's host of a message.",
                DerivedCell::Text(|step, hosts| host_name(step.from_host?, hosts)),
            ),
            DerivedColumn::or_null(
                "from_thread",
                "Sender's thread of a message.",
                DerivedCell::U32(|step| step.from_thread),
            ),
            DerivedColumn::of(
                "start_ns",
                "Begin, on the clock of the host that has the request.",
                DerivedCell::I64(|step| Some(signed(step.start_ns))),
            ),
            DerivedColumn::of(
                "end_ns",
                "End, on the same clock.",
                DerivedCell::I64(|step| Some(signed(step.end_ns))),
            ),
            DerivedColumn::of(
                "time_ns",
                "Time from start to end.",
                DerivedCell::I64(|step| Some(signed(step.end_ns.saturating_sub(step.start_ns)))),
            ),
        ]
    },
};
