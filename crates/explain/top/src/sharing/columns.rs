//! The columns of disks that tasks share.

use luc_units::figures::three_digits;

use super::SharedDisk;
use crate::columns::{Column, Value, integer, nothing, number, share, time};

pub(crate) const SHARED: &[Column<SharedDisk>] = &[
    Column {
        title: "DISK",
        about: "a disk for which tasks contended",
        width: 8,
        dispensable: 0,
        text: |row| row.name.clone(),
        value: |row| Value::Text(row.name.clone()),
    },
    Column {
        title: "BUSY",
        about: "share of the time in which it served requests",
        width: 5,
        dispensable: 0,
        text: |row| share(Some(row.busy)),
        value: |row| number(row.busy),
    },
    Column {
        title: "TASKS",
        about: "processes that used it",
        width: 5,
        dispensable: 1,
        text: |row| row.tasks.to_string(),
        value: |row| number(row.tasks as f64),
    },
    Column {
        title: "EFFIC",
        about: "bandwidth over that without switches; -: not known",
        width: 5,
        dispensable: 0,
        text: |row| share(row.efficiency),
        value: |row| Value::Number(row.efficiency),
    },
    Column {
        title: "SOFT",
        about: "share of a request's time in which the device was not at it",
        width: 4,
        dispensable: 3,
        text: |row| share(row.soft()),
        value: |row| Value::Number(row.soft()),
    },
    Column {
        title: "SWITCH",
        about: "what a request takes longer after another task's",
        width: 7,
        dispensable: 2,
        text: |row| time(row.switch_ns.map(|ns| ns as f64)),
        value: |row| integer(row.switch_ns),
    },
    Column {
        title: "SW/s",
        about: "such requests per second",
        width: 5,
        dispensable: 4,
        text: |row| three_digits(row.switches_per_s),
        value: |row| number(row.switches_per_s),
    },
    Column {
        title: "WAITS MOST",
        about: "who waited most while the disk served whom, in a second",
        width: 0,
        dispensable: 5,
        text: worst,
        value: |row| Value::Number(row.slowed.first().map(|(.., ns_per_s)| *ns_per_s)),
    },
];

/// The names are short, so that both have room: numbers are only where the names do not tell them apart.
fn worst(row: &SharedDisk) -> String {
    let Some((victim, culprit, ns_per_s)) = row.slowed.first() else {
        return nothing();
    };
    let time = time(Some(*ns_per_s));
    if victim.comm == culprit.comm || victim.comm.is_empty() || culprit.comm.is_empty() {
        return format!("{time} {victim} for {}", culprit.process);
    }
    format!("{time} {} for {}", victim.comm, culprit.comm)
}
