//! The columns of disks and tasks.

use luc_throttle::watch::{DiskSeen, TaskSeen};
use luc_units::figures::{Size, Time, three_digits};
use luc_units::plain;

use crate::columns::{Column, Value};

fn nothing() -> String {
    "-".to_owned()
}

fn share(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn rate(bytes: f64) -> String {
    if bytes > 0.0 { Size(bytes).to_string() } else { nothing() }
}

fn or_text(text: &str) -> String {
    if text.is_empty() { nothing() } else { plain(text) }
}

fn number(value: f64) -> Value {
    Value::Number(Some(value))
}

pub(super) const DISKS: &[Column<DiskSeen>] = &[
    Column {
        title: "DISK",
        about: "its name",
        width: 0,
        dispensable: 0,
        text: |row| plain(&row.name),
        value: |row| Value::Text(row.name.clone()),
    },
    Column {
        title: "BUSY",
        about: "share of the time in which it had something to do",
        width: 5,
        dispensable: 0,
        text: |row| share(row.busy),
        value: |row| number(row.busy),
    },
    Column {
        title: "BYTES/s",
        about: "read and written per second",
        width: 9,
        dispensable: 1,
        text: |row| rate(row.bytes_per_s),
        value: |row| number(row.bytes_per_s),
    },
    Column {
        title: "EFFIC",
        about: "that over what the same tasks reach alone; -: not seen alone yet",
        width: 6,
        dispensable: 0,
        text: |row| row.efficiency.map_or_else(nothing, share),
        value: |row| Value::Number(row.efficiency),
    },
    Column {
        title: "SWITCH",
        about: "what a switch from task to task costs",
        width: 8,
        dispensable: 2,
        text: |row| row.switch_ns.map_or_else(nothing, |ns| Time(ns).to_string()),
        value: |row| Value::Number(row.switch_ns),
    },
    Column {
        title: "LOST/s",
        about: "bytes per second that switches cost",
        width: 9,
        dispensable: 3,
        text: |row| row.lost_bytes_per_s.map_or_else(nothing, rate),
        value: |row| Value::Number(row.lost_bytes_per_s),
    },
    Column {
        title: "TASKS",
        about: "tasks that used it or wanted to",
        width: 5,
        dispensable: 0,
        text: |row| row.tasks.to_string(),
        value: |row| number(row.tasks as f64),
    },
    Column {
        title: "WAIT",
        about: "those of them that have a request out or are frozen",
        width: 5,
        dispensable: 4,
        text: |row| row.waiting.to_string(),
        value: |row| number(row.waiting as f64),
    },
];

pub(super) const TASKS: &[Column<TaskSeen>] = &[
    Column {
        title: "STATE",
        about: "uses a disk, waits for it, is frozen, is idle",
        width: 6,
        dispensable: 0,
        text: |row| row.state.name().to_owned(),
        value: |row| Value::Text(row.state.name().to_owned()),
    },
    Column {
        title: "WHY",
        about: "why it was frozen or thawed last",
        width: 10,
        dispensable: 2,
        text: |row| or_text(&row.why),
        value: |row| Value::Text(row.why.clone()),
    },
    Column {
        title: "CLASS",
        about: "batch, protect or ignore; -: no daemon runs",
        width: 7,
        dispensable: 5,
        text: |row| row.class.as_deref().map_or_else(nothing, plain),
        value: |row| Value::Text(row.class.clone().unwrap_or_default()),
    },
    Column {
        title: "SHARE",
        about: "its share of the disk's time",
        width: 5,
        dispensable: 0,
        text: |row| share(row.share),
        value: |row| number(row.share),
    },
    Column {
        title: "BYTES/s",
        about: "read and written per second",
        width: 9,
        dispensable: 3,
        text: |row| rate(row.bytes_per_s),
        value: |row| number(row.bytes_per_s),
    },
    Column {
        title: "SLOWER",
        about: "disk time that fair sharing would have given it since this view began, over what it got",
        width: 6,
        dispensable: 1,
        text: |row| row.slowdown.map_or_else(nothing, three_digits),
        value: |row| Value::Number(row.slowdown),
    },
    Column {
        title: "FROZEN",
        about: "for how long it has been frozen",
        width: 8,
        dispensable: 1,
        text: |row| match row.frozen_ns {
            0 => nothing(),
            ns => Time::from(ns).to_string(),
        },
        value: |row| number(row.frozen_ns as f64),
    },
    Column {
        title: "DISK",
        about: "the disk that it has used most",
        width: 8,
        dispensable: 4,
        text: |row| or_text(&row.disk),
        value: |row| Value::Text(row.disk.clone()),
    },
    Column {
        title: "CGROUP",
        about: "the task: a cgroup, below the root",
        width: 0,
        dispensable: 0,
        text: |row| plain(&row.cgroup),
        value: |row| Value::Text(row.cgroup.clone()),
    },
];
