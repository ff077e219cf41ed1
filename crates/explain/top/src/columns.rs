//! The columns of both tables.

use luc_units::figures::{Time, three_digits};

use super::group::Group;
use super::row::{ActorRow, FileSystemRow};

/// Sort value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// Largest first; nothing comes last.
    Number(Option<f64>),
    /// In the order of the alphabet.
    Text(String),
}

/// One column of a table of `R`.
pub(super) struct Column<R> {
    pub(super) title: &'static str,
    /// Description for the help.
    pub(super) about: &'static str,
    /// In characters; 0: what the others leave.
    pub(super) width: u16,
    /// The higher, the sooner it is left out where there is no room. Those with 0 never are.
    pub(super) dispensable: u8,
    pub(super) text: fn(&R) -> String,
    pub(super) value: fn(&R) -> Value,
}

fn rate(value: f64) -> String {
    three_digits(value)
}

pub(super) fn share(value: Option<f64>) -> String {
    value.map_or_else(nothing, |share| format!("{:.0}%", share * 100.0))
}

pub(super) fn time(ns: Option<f64>) -> String {
    ns.map_or_else(nothing, |ns| Time(ns).to_string())
}

fn positive(value: f64) -> Option<f64> {
    (value > 0.0).then_some(value)
}

pub(super) fn nothing() -> String {
    "-".to_owned()
}

pub(super) fn number(value: f64) -> Value {
    Value::Number(Some(value))
}

pub(super) fn integer(value: Option<u64>) -> Value {
    Value::Number(value.map(|value| value as f64))
}

/// A column with a time of a file system.
macro_rules! time_column {
    ($title:literal, $dispensable:literal, $field:ident, $about:literal) => {
        Column {
            title: $title,
            about: $about,
            width: 8,
            dispensable: $dispensable,
            text: |row| time(row.$field.map(|ns| ns as f64)),
            value: |row| integer(row.$field),
        }
    };
}

pub(super) const FILE_SYSTEMS: &[Column<FileSystemRow>] = &[
    Column {
        title: "MOUNTED ON",
        about: "where the file system is mounted, or its device",
        width: 0,
        dispensable: 0,
        text: FileSystemRow::name,
        value: |row| Value::Text(row.name()),
    },
    Column {
        title: "TYPE",
        about: "its type",
        width: 6,
        dispensable: 6,
        text: |row| row.kind.clone(),
        value: |row| Value::Text(row.kind.clone()),
    },
    Column {
        title: "COMMIT/s",
        about: "commits per second of a jbd2 journal (ext4), fast commits included",
        width: 8,
        dispensable: 1,
        text: |row| row.commits_per_s.map_or_else(nothing, rate),
        value: |row| Value::Number(row.commits_per_s),
    },
    Column {
        title: "FSYNC/s",
        about: "fsync, fdatasync, O_SYNC writes and the like per second",
        width: 8,
        dispensable: 0,
        text: |row| rate(row.syncs_per_s),
        value: |row| number(row.syncs_per_s),
    },
    Column {
        title: "PER COMM",
        about: "fsyncs that a commit served, on average",
        width: 8,
        dispensable: 2,
        text: |row| row.syncs_per_commit.map_or_else(nothing, three_digits),
        value: |row| Value::Number(row.syncs_per_commit),
    },
    time_column!("COMMIT", 7, commit_ns, "mean duration of a commit"),
    time_column!("FSYNC", 3, sync_ns, "mean duration of an fsync"),
    time_column!("P99", 5, sync_p99_ns, "99th percentile of that"),
    Column {
        title: "EARLIER",
        about: "share of the fsyncs' time that the commit of an earlier transaction took",
        width: 7,
        dispensable: 4,
        text: |row| share(row.earlier),
        value: |row| Value::Number(row.earlier),
    },
    Column {
        title: "BUSY",
        about: "share of the time in which the disk had something to do",
        width: 5,
        dispensable: 6,
        text: |row| share(row.busy),
        value: |row| Value::Number(row.busy),
    },
];

impl FileSystemRow {
    /// Its mount point, or its device.
    pub fn name(&self) -> String {
        match self.mount_point.as_str() {
            "" => self.dev.to_string(),
            mount_point => mount_point.to_owned(),
        }
    }
}

/// A column with one group's share of the time in calls.
macro_rules! group_column {
    ($group:ident, $title:literal, $width:literal, $dispensable:literal, $about:literal) => {
        Column {
            title: $title,
            about: $about,
            width: $width,
            dispensable: $dispensable,
            text: |row| group_share(row, Group::$group),
            value: |row| number(row.time.share(Group::$group)),
        }
    };
}

/// Of a thread it is not known whose commit it waited for.
fn group_share(row: &ActorRow, group: Group) -> String {
    match row.thread {
        Some(_) if matches!(group, Group::Earlier) => nothing(),
        _ => share((row.time.sum() > 0).then(|| row.time.share(group))),
    }
}

pub(super) const PARTIES: &[Column<ActorRow>] = &[
    Column {
        title: "PID",
        about: "the process, or the thread",
        width: 7,
        dispensable: 0,
        text: |row| row.id().to_string(),
        value: |row| number(f64::from(row.id())),
    },
    Column {
        title: "LOST/s",
        about: "time that its threads waited in calls on files, per second, all threads together",
        width: 8,
        dispensable: 0,
        text: |row| time(positive(row.lost_ns_per_s)),
        value: |row| number(row.lost_ns_per_s),
    },
    group_column!(
        Earlier,
        "EARLIER",
        7,
        2,
        "of its time in calls: commits of earlier transactions, which did not serve it"
    ),
    group_column!(Commit, "COMMIT", 6, 3, "its own commit; of threads all commits"),
    group_column!(Disk, "DISK", 5, 4, "its data, flushes and the device"),
    group_column!(
        Journal,
        "JOURNL",
        6,
        5,
        "buffers and transactions that a commit holds, space in the journal"
    ),
    group_column!(Locks, "LOCKS", 5, 6, "locks of directories and files"),
    group_column!(Runnable, "RUNQ", 5, 8, "ready to go on, but without a processor"),
    Column {
        title: "CAUSED/s",
        about: "time that other processes waited for its share of their commits, per second",
        width: 8,
        dispensable: 1,
        text: |row| time(row.caused_ns_per_s.and_then(positive)),
        value: |row| Value::Number(row.caused_ns_per_s),
    },
    Column {
        title: "FSYNC/s",
        about: "its calls of fsync and the like per second",
        width: 8,
        dispensable: 7,
        text: |row| row.syncs_per_s.map_or_else(nothing, rate),
        value: |row| Value::Number(row.syncs_per_s),
    },
    Column {
        title: "COMMAND",
        about: "its name",
        width: 0,
        dispensable: 0,
        text: |row| row.comm.clone(),
        value: |row| Value::Text(row.comm.clone()),
    },
];

impl ActorRow {
    /// The thread's number, or the process'.
    pub fn id(&self) -> u32 {
        self.thread.map_or(self.process.0, |thread| thread.0)
    }
}

/// The least room for a column that takes what the others leave.
const MIN_FLEXIBLE_WIDTH: u16 = 16;

/// The columns that fit into `width`, by their indexes, with their widths.
pub(super) fn fitting<R>(columns: &[Column<R>], width: u16) -> Vec<(usize, u16)> {
    let mut chosen: Vec<usize> = (0..columns.len()).collect();
    let need = |chosen: &[usize]| -> u16 {
        chosen
            .iter()
            .map(|&index| match columns[index].width {
                0 => MIN_FLEXIBLE_WIDTH + 1,
                width => width + 1,
            })
            .sum()
    };
    while need(&chosen) > width + 1 {
        let least = chosen
            .iter()
            .copied()
            .filter(|&index| columns[index].dispensable > 0)
            .max_by_key(|&index| columns[index].dispensable);
        match least {
            Some(least) => chosen.retain(|&index| index != least),
            None => break,
        }
    }
    let rest = (width + 1).saturating_sub(need(&chosen)) + MIN_FLEXIBLE_WIDTH;
    chosen
        .into_iter()
        .map(|index| match columns[index].width {
            0 => (index, rest),
            width => (index, width),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_by_rank() {
        let all = fitting(FILE_SYSTEMS, 120);
        assert_eq!(all.len(), FILE_SYSTEMS.len());
        assert_eq!(
            all.iter().map(|(_, width)| width + 1).sum::<u16>(),
            121,
            "the first column takes the rest"
        );
        let few: Vec<&str> = fitting(FILE_SYSTEMS, 36)
            .into_iter()
            .map(|(index, _)| FILE_SYSTEMS[index].title)
            .collect();
        assert_eq!(few, ["MOUNTED ON", "COMMIT/s", "FSYNC/s"]);
        assert!(!fitting(PARTIES, 0).is_empty());
    }
}
