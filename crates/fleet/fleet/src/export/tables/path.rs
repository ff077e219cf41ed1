//! Table `path`: the parts of critical paths.

use crate::export::table::{Cell, Column, Table, host_name, signed};
use crate::relations::PathStep;

pub(in crate::export) const PATH: Table<PathStep> = Table {
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
                Cell::Text(|step, hosts| host_name(step.host, hosts)),
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
                Cell::Text(|step, hosts| host_name(step.from_host?, hosts)),
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
