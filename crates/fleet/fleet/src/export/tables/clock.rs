//! Tables `host` and `clock`: hosts, and the lines of their clocks.

use crate::export::derived_table::{DerivedCell, DerivedColumn, DerivedTable, host_name};
use crate::flat_rows::{ClockLine, HostClock};
use crate::joined_traces::JoinedTraces;

/// A host, and where its clock's lines lie.
pub(in crate::export) struct HostRow {
    number: u32,
    kernel: String,
    directory: String,
    clock: HostClock,
}

pub(in crate::export) fn hosts(joined: &JoinedTraces, clocks: &[HostClock]) -> Vec<HostRow> {
    let rows = joined.hosts.iter().zip(clocks).zip(0..);
    rows.map(|((host, &clock), number)| HostRow {
        number,
        kernel: host.summary.kernel.clone(),
        directory: host.summary.directory.clone(),
        clock,
    })
    .collect()
}

pub(in crate::export) const HOST: DerivedTable<HostRow> = DerivedTable {
    name: "host",
    about: "A host whose trace was read. Its clock is known by lines (table `clock`) of `clock_step_ns` each.",
    columns: || {
        vec![
            DerivedColumn::of(
                "host",
                "Its name.",
                DerivedCell::Text(|row, hosts| host_name(row.number, hosts)),
            ),
            DerivedColumn::of(
                "number",
                "Its number; 0 is the first host.",
                DerivedCell::U32(|row| Some(row.number)),
            ),
            DerivedColumn::of(
                "kernel",
                "Release of its kernel.",
                DerivedCell::Text(|row, _| Some(&row.kernel)),
            ),
            DerivedColumn::of(
                "directory",
                "Directory of its trace.",
                DerivedCell::Text(|row, _| Some(&row.directory)),
            ),
            DerivedColumn::of(
                "clock_begin_ns",
                "Begin of the trace.",
                DerivedCell::I64(|row| Some(row.clock.begin_ns)),
            ),
            DerivedColumn::of(
                "clock_end_ns",
                "End of the trace.",
                DerivedCell::I64(|row| Some(row.clock.end_ns)),
            ),
            DerivedColumn::of(
                "clock_step_ns",
                "Length of a line of its clock.",
                DerivedCell::I64(|row| Some(row.clock.step_ns)),
            ),
        ]
    },
};

pub(in crate::export) const CLOCK: DerivedTable<ClockLine> = DerivedTable {
    name: "clock",
    about: "A straight line from a host's clock to the first host's. A time t between begin_ns and end_ns is \
            global_ns + (t - begin_ns) + growth_ns * (t - begin_ns) / (end_ns - begin_ns) there, rounded towards zero.",
    columns: || {
        vec![
            DerivedColumn::of(
                "host",
                "The host.",
                DerivedCell::Text(|row, hosts| host_name(row.host, hosts)),
            ),
            DerivedColumn::of(
                "line",
                "Number of the line: (t - clock_begin_ns) / clock_step_ns.",
                DerivedCell::U32(|row| Some(row.line)),
            ),
            DerivedColumn::of(
                "begin_ns",
                "Time of the host at which the line begins.",
                DerivedCell::I64(|row| Some(row.begin_ns)),
            ),
            DerivedColumn::of(
                "end_ns",
                "Time of the host at which it ends.",
                DerivedCell::I64(|row| Some(row.end_ns)),
            ),
            DerivedColumn::of(
                "global_ns",
                "Time of the first host at the line's begin.",
                DerivedCell::I64(|row| Some(row.global_ns)),
            ),
            DerivedColumn::of(
                "growth_ns",
                "Time that the first host's clock gains along the line.",
                DerivedCell::I64(|row| Some(row.growth_ns)),
            ),
        ]
    },
};
