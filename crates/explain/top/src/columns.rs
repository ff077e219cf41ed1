//! The columns of tables: builder, cells, and those of `luc top`.

use luc_units::number_formats::{FormattedSize, FormattedTime, three_digits};

use super::part_groups::PartGroup;
use super::table_rows::{ActorRow, FileSystemRow};

/// Sort value of a row in a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SortValue {
    /// Largest first, `None` last.
    Number(Option<f64>),
    /// Sorted in alphabetical order.
    Text(String),
}

/// Content of a cell. `None` is shown as `-`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TableCell {
    Text(String),
    Count(u64),
    /// A figure of three digits.
    Figure(Option<f64>),
    /// A fraction of 1, shown in percent.
    Share(Option<f64>),
    TimeNs(Option<f64>),
    /// Bytes; 0 is shown as `-`, too.
    Bytes(Option<f64>),
}

impl TableCell {
    pub(super) fn count(count: usize) -> Self {
        Self::Count(count as u64)
    }

    pub(super) fn time(ns: Option<u64>) -> Self {
        Self::TimeNs(ns.map(|ns| ns as f64))
    }

    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Count(count) => count.to_string(),
            Self::Figure(Some(figure)) => three_digits(figure),
            Self::Share(Some(share)) => format!("{:.0}%", share * 100.0),
            Self::TimeNs(Some(ns)) => FormattedTime(ns).to_string(),
            Self::Bytes(Some(bytes)) if bytes > 0.0 => FormattedSize(bytes).to_string(),
            Self::Figure(None) | Self::Share(None) | Self::TimeNs(None) | Self::Bytes(_) => {
                nothing()
            }
        }
    }

    fn value(self) -> SortValue {
        match self {
            Self::Text(text) => SortValue::Text(text),
            Self::Count(count) => SortValue::Number(Some(count as f64)),
            Self::Figure(number)
            | Self::Share(number)
            | Self::TimeNs(number)
            | Self::Bytes(number) => SortValue::Number(number),
        }
    }
}

/// A column of a table with rows `R`.
pub(super) struct TableColumn<R> {
    pub(super) title: &'static str,
    /// Description for the help.
    pub(super) about: &'static str,
    /// Width in characters; 0 takes the room that the others leave.
    pub(super) width: u16,
    /// Order in which columns are left out where room is short: the highest first, 0 never.
    dispensable: u8,
    cell: fn(&R) -> TableCell,
    /// Sort value, if it is not that of the cell.
    value: Option<fn(&R) -> SortValue>,
}

impl<R> TableColumn<R> {
    /// Makes a column of a fixed width.
    pub(super) const fn fixed(
        title: &'static str,
        width: u16,
        about: &'static str,
        cell: fn(&R) -> TableCell,
    ) -> Self {
        Self { title, about, width, dispensable: 0, cell, value: None }
    }

    /// Makes a column that takes the room that the others leave.
    pub(super) const fn flexible(
        title: &'static str,
        about: &'static str,
        cell: fn(&R) -> TableCell,
    ) -> Self {
        Self::fixed(title, 0, about, cell)
    }

    /// Sets the order in which columns are left out: the highest first.
    pub(super) const fn dispensable(mut self, order: u8) -> Self {
        self.dispensable = order;
        self
    }

    /// Sorts by another value than that of the cell.
    const fn sorted_by(mut self, value: fn(&R) -> SortValue) -> Self {
        self.value = Some(value);
        self
    }

    pub(super) fn text(&self, row: &R) -> String {
        (self.cell)(row).text()
    }

    pub(super) fn value(&self, row: &R) -> SortValue {
        self.value.map_or_else(|| (self.cell)(row).value(), |value| value(row))
    }
}

pub(super) fn nothing() -> String {
    "-".to_owned()
}

fn positive(value: f64) -> Option<f64> {
    (value > 0.0).then_some(value)
}

type FileSystemColumn = TableColumn<FileSystemRow>;

pub(super) const FILE_SYSTEMS: &[FileSystemColumn] = &[
    FileSystemColumn::flexible(
        "MOUNTED ON",
        "where the file system is mounted, or its device",
        |row| TableCell::Text(row.name()),
    ),
    FileSystemColumn::fixed("TYPE", 6, "its type", |row| TableCell::Text(row.kind.clone()))
        .dispensable(6),
    FileSystemColumn::fixed(
        "COMMIT/s",
        8,
        "commits per second of a jbd2 journal (ext4), fast commits included",
        |row| TableCell::Figure(row.commits_per_s),
    )
    .dispensable(1),
    FileSystemColumn::fixed(
        "FSYNC/s",
        8,
        "fsync, fdatasync, O_SYNC writes and the like per second",
        |row| TableCell::Figure(Some(row.syncs_per_s)),
    ),
    FileSystemColumn::fixed("PER COMM", 8, "fsyncs that a commit served, on average", |row| {
        TableCell::Figure(row.syncs_per_commit)
    })
    .dispensable(2),
    FileSystemColumn::fixed("COMMIT", 8, "mean duration of a commit", |row| {
        TableCell::time(row.commit_ns)
    })
    .dispensable(7),
    FileSystemColumn::fixed("FSYNC", 8, "mean duration of an fsync", |row| {
        TableCell::time(row.sync_ns)
    })
    .dispensable(3),
    FileSystemColumn::fixed("P99", 8, "99th percentile of that", |row| {
        TableCell::time(row.sync_p99_ns)
    })
    .dispensable(5),
    FileSystemColumn::fixed(
        "EARLIER",
        7,
        "share of the fsyncs' time that the commit of an earlier transaction took",
        |row| TableCell::Share(row.earlier),
    )
    .dispensable(4),
    FileSystemColumn::fixed(
        "BUSY",
        5,
        "share of the time in which the disk had something to do",
        |row| TableCell::Share(row.busy),
    )
    .dispensable(6),
];

impl FileSystemRow {
    /// Returns its mount point, or its device if that is not known.
    pub fn name(&self) -> String {
        match self.mount_point.as_str() {
            "" => self.dev.to_string(),
            mount_point => mount_point.to_owned(),
        }
    }
}

type ActorColumn = TableColumn<ActorRow>;

/// A column with one group's share of the time in calls.
macro_rules! group_column {
    ($group:ident, $title:literal, $width:literal, $about:literal) => {
        ActorColumn::fixed($title, $width, $about, |row| group_share(row, PartGroup::$group))
            .sorted_by(|row| SortValue::Number(Some(row.time.share(PartGroup::$group))))
    };
}

/// Returns a group's share, unless it is not known: of a thread it is not known whose commit it waited for.
fn group_share(row: &ActorRow, group: PartGroup) -> TableCell {
    let is_known = row.time.sum() > 0 && (row.thread.is_none() || group != PartGroup::Earlier);
    TableCell::Share(is_known.then(|| row.time.share(group)))
}

pub(super) const ACTORS: &[ActorColumn] = &[
    ActorColumn::fixed("PID", 7, "the process, or the thread", |row| {
        TableCell::Count(row.id().into())
    }),
    ActorColumn::fixed(
        "LOST/s",
        8,
        "time that its threads waited in calls on files, per second, all threads together",
        |row| TableCell::TimeNs(positive(row.lost_ns_per_s)),
    )
    .sorted_by(|row| SortValue::Number(Some(row.lost_ns_per_s))),
    group_column!(
        Earlier,
        "EARLIER",
        7,
        "of its time in calls: commits of earlier transactions, which did not serve it"
    )
    .dispensable(2),
    group_column!(Commit, "COMMIT", 6, "its own commit; of threads all commits").dispensable(3),
    group_column!(Disk, "DISK", 5, "its data, flushes and the device").dispensable(4),
    group_column!(
        Journal,
        "JOURNL",
        6,
        "buffers and transactions that a commit holds, space in the journal"
    )
    .dispensable(5),
    group_column!(Locks, "LOCKS", 5, "locks of directories and files").dispensable(6),
    group_column!(Runnable, "RUNQ", 5, "ready to go on, but without a processor").dispensable(8),
    ActorColumn::fixed(
        "CAUSED/s",
        8,
        "time that other processes waited for its share of their commits, per second",
        |row| TableCell::TimeNs(row.caused_ns_per_s.and_then(positive)),
    )
    .sorted_by(|row| SortValue::Number(row.caused_ns_per_s))
    .dispensable(1),
    ActorColumn::fixed("FSYNC/s", 8, "its calls of fsync and the like per second", |row| {
        TableCell::Figure(row.syncs_per_s)
    })
    .dispensable(7),
    ActorColumn::flexible("COMMAND", "its name", |row| TableCell::Text(row.comm.clone())),
];

impl ActorRow {
    /// Returns the number of the thread, or of the process.
    pub fn id(&self) -> u32 {
        self.thread.map_or(self.process.0, |thread| thread.0)
    }
}

/// Minimum width of a column that takes what the others leave.
const MIN_FLEXIBLE_WIDTH: u16 = 16;

/// Chooses the columns that fit into `width`, by their indexes, with their widths.
pub(super) fn fitting<R>(columns: &[TableColumn<R>], width: u16) -> Vec<(usize, u16)> {
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
        assert!(!fitting(ACTORS, 0).is_empty());
    }
}
