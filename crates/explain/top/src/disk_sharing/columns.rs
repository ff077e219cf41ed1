//! The columns of disks that tasks share.

use luc_units::number_formats::FormattedTime;

use super::SharedDisk;
use crate::columns::{TableCell, TableColumn, nothing};

type DiskColumn = TableColumn<SharedDisk>;

pub(crate) const SHARED: &[DiskColumn] = &[
    DiskColumn::fixed("DISK", 8, "a disk for which tasks contended", |row| {
        TableCell::Text(row.name.clone())
    }),
    DiskColumn::fixed("BUSY", 5, "share of the time in which it served requests", |row| {
        TableCell::Share(Some(row.busy))
    }),
    DiskColumn::fixed("TASKS", 5, "processes that used it", |row| TableCell::count(row.tasks))
        .dispensable(1),
    DiskColumn::fixed("EFFIC", 5, "bandwidth over that without switches; -: not known", |row| {
        TableCell::Share(row.efficiency)
    }),
    DiskColumn::fixed(
        "SOFT",
        4,
        "share of a request's time in which the device was not at it",
        |row| TableCell::Share(row.soft()),
    )
    .dispensable(3),
    DiskColumn::fixed("SWITCH", 7, "what a request takes longer after another task's", |row| {
        TableCell::time(row.switch_ns)
    })
    .dispensable(2),
    DiskColumn::fixed("SW/s", 5, "such requests per second", |row| {
        TableCell::Figure(Some(row.switches_per_s))
    })
    .dispensable(4),
    DiskColumn::flexible(
        "WAITS MOST",
        "who waited most while the disk served whom, in a second",
        |row| TableCell::Text(worst(row)),
    )
    .dispensable(5),
];

/// Names the pair that waited longest. Names are short, so that both have room: numbers appear only where the names do
/// not tell them apart.
fn worst(row: &SharedDisk) -> String {
    let Some((victim, culprit, ns_per_s)) = row.slowed.first() else {
        return nothing();
    };
    let time = FormattedTime(*ns_per_s);
    if victim.comm == culprit.comm || victim.comm.is_empty() || culprit.comm.is_empty() {
        return format!("{time} {victim} for {}", culprit.process);
    }
    format!("{time} {} for {}", victim.comm, culprit.comm)
}
