//! The columns of disks and tasks.

use luc_throttle::activity_watch::{DiskActivity, DisplayedTask};
use luc_units::plain;

use crate::columns::{TableCell, TableColumn, nothing};

/// Shows a name without control characters, and `-` for none.
fn name(text: &str) -> TableCell {
    TableCell::Text(if text.is_empty() { nothing() } else { plain(text) })
}

type DiskColumn = TableColumn<DiskActivity>;

pub(super) const DISKS: &[DiskColumn] = &[
    DiskColumn::flexible("DISK", "its name", |row| TableCell::Text(plain(&row.name))),
    DiskColumn::fixed("BUSY", 5, "share of the time in which it had something to do", |row| {
        TableCell::Share(Some(row.busy))
    }),
    DiskColumn::fixed("BYTES/s", 9, "read and written per second", |row| {
        TableCell::Bytes(Some(row.bytes_per_s))
    })
    .dispensable(1),
    DiskColumn::fixed(
        "EFFIC",
        6,
        "that over what the same tasks reach alone; -: not seen alone yet",
        |row| TableCell::Share(row.efficiency),
    ),
    DiskColumn::fixed("SWITCH", 8, "what a switch from task to task costs", |row| {
        TableCell::TimeNs(row.switch_ns)
    })
    .dispensable(2),
    DiskColumn::fixed("LOST/s", 9, "bytes per second that switches cost", |row| {
        TableCell::Bytes(row.lost_bytes_per_s)
    })
    .dispensable(3),
    DiskColumn::fixed("TASKS", 5, "tasks that used it or wanted to", |row| {
        TableCell::count(row.tasks)
    }),
    DiskColumn::fixed("WAIT", 5, "those of them that have a request out or are frozen", |row| {
        TableCell::count(row.waiting)
    })
    .dispensable(4),
];

type TaskColumn = TableColumn<DisplayedTask>;

pub(super) const TASKS: &[TaskColumn] = &[
    TaskColumn::fixed("STATE", 6, "uses a disk, waits for it, is frozen, is idle", |row| {
        TableCell::Text(row.state.name().to_owned())
    }),
    TaskColumn::fixed("WHY", 10, "why it was frozen or thawed last", |row| name(&row.why))
        .dispensable(2),
    TaskColumn::fixed("CLASS", 7, "batch, protect or ignore; -: no daemon runs", |row| {
        TableCell::Text(row.class.as_deref().map_or_else(nothing, plain))
    })
    .dispensable(5),
    TaskColumn::fixed("SHARE", 5, "its share of the disk's time", |row| {
        TableCell::Share(Some(row.share))
    }),
    TaskColumn::fixed("BYTES/s", 9, "read and written per second", |row| {
        TableCell::Bytes(Some(row.bytes_per_s))
    })
    .dispensable(3),
    TaskColumn::fixed(
        "SLOWER",
        6,
        "disk time that fair sharing would have given it since this view began, over what it got",
        |row| TableCell::Figure(row.slowdown),
    )
    .dispensable(1),
    TaskColumn::fixed("FROZEN", 8, "for how long it has been frozen", |row| {
        TableCell::time((row.frozen_ns > 0).then_some(row.frozen_ns))
    })
    .dispensable(1),
    TaskColumn::fixed("DISK", 8, "the disk that it has used most", |row| name(&row.disk))
        .dispensable(4),
    TaskColumn::flexible("CGROUP", "the task: a cgroup, below the root", |row| {
        TableCell::Text(plain(&row.cgroup))
    }),
];
