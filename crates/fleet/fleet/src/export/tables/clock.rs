//! Tables `host` and `clock`: hosts, and the lines of their clocks.

use crate::export::table::{Cell, Column, Table, host_name};
use crate::joined::Joined;
use crate::relations::{ClockLine, HostClock};

/// A host, and where its clock's lines lie.
pub(in crate::export) struct HostRow {
    number: u32,
    kernel: String,
    directory: String,
    clock: HostClock,
}

pub(in crate::export) fn hosts(joined: &Joined, clocks: &[HostClock]) -> Vec<HostRow> {
    let rows = joined.hosts.iter().zip(clocks).zip(0..);
    rows.map(|((host, &clock), number)| HostRow {
        number,
        kernel: host.summary.kernel.clone(),
        directory: host.summary.directory.clone(),
        clock,
    })
    .collect()
}

pub(in crate::export) const HOST: Table<HostRow> = Table {
    name: "host",
    about: "A host whose trace was read. Its clock is known by lines (table `clock`) of `clock_step_ns` each.",
    columns: || {
        vec![
            Column::of("host", "Its name.", Cell::Text(|row, hosts| host_name(row.number, hosts))),
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

pub(in crate::export) const CLOCK: Table<ClockLine> = Table {
    name: "clock",
    about: "A straight line from a host's clock to the first host's. A time t between begin_ns and end_ns is \
            global_ns + (t - begin_ns) + growth_ns * (t - begin_ns) / (end_ns - begin_ns) there, rounded towards zero.",
    columns: || {
        vec![
            Column::of("host", "The host.", Cell::Text(|row, hosts| host_name(row.host, hosts))),
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
