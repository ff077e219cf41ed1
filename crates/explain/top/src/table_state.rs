//! State of a table: order, filter, and the selected line.

use std::cmp::Ordering;

use luc_events::{Cgroup, Dev, Pid, Tgid};

use super::columns::{SortValue, TableColumn};

/// Identity of a line across intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineId {
    FileSystem(Dev),
    Actor(Tgid, Cgroup, Option<Pid>),
}

/// State of a table: order, filter, selected line and scroll.
#[derive(Clone, Debug, Default)]
pub(super) struct TableState {
    /// Index of the column that it is sorted by.
    pub(super) sort: usize,
    pub(super) inverted: bool,
    /// Text that a line needs to be shown; empty shows all.
    pub(super) filter: String,
    /// The selected line, wherever it moves. `None` selects the first line, whatever it is about.
    pub(super) followed: Option<LineId>,
    /// Last known place of the selected line.
    pub(super) place: usize,
    /// Place of the first shown line.
    pub(super) first: usize,
    /// Lines shown at the last drawing.
    pub(super) height: usize,
}

impl TableState {
    /// Returns the indexes of the rows that pass the filter, in order.
    pub(super) fn order<R>(
        &self,
        rows: &[R],
        columns: &[TableColumn<R>],
        name: fn(&R) -> String,
    ) -> Vec<usize> {
        let filter = self.filter.to_lowercase();
        let mut order: Vec<usize> = (0..rows.len())
            .filter(|&index| name(&rows[index]).to_lowercase().contains(&filter))
            .collect();
        if let Some(column) = columns.get(self.sort) {
            order.sort_by(|&a, &b| {
                let ordering = compare(&column.value(&rows[a]), &column.value(&rows[b]));
                if self.inverted { ordering.reverse() } else { ordering }
            });
        }
        order
    }

    /// Finds the followed line again among `ids`. If it is gone, selects the line in its place.
    pub(super) fn settle(&mut self, ids: &[LineId]) {
        if self.followed.is_none() {
            self.place = 0;
            return;
        }
        let found = ids.iter().position(|id| Some(*id) == self.followed);
        self.select(found.unwrap_or(self.place), ids);
    }

    /// Selects a line by its place.
    pub(super) fn select(&mut self, place: usize, ids: &[LineId]) {
        self.place = place.min(ids.len().saturating_sub(1));
        self.followed = match self.place {
            0 => None,
            place => ids.get(place).copied(),
        };
    }

    /// Selects the line `by` lines further.
    pub(super) fn step(&mut self, by: isize, ids: &[LineId]) {
        self.settle(ids);
        self.select(self.place.saturating_add_signed(by), ids);
    }

    /// Scrolls until the selected line is among `height` lines.
    pub(super) fn scroll(&mut self, height: usize, count: usize) {
        self.height = height;
        self.first = self.first.min(count.saturating_sub(height));
        if self.place < self.first {
            self.first = self.place;
        } else if height > 0 && self.place >= self.first + height {
            self.first = self.place + 1 - height;
        }
    }
}

/// Orders numbers largest first with `None` last, and texts alphabetically.
fn compare(a: &SortValue, b: &SortValue) -> Ordering {
    match (a, b) {
        (SortValue::Number(a), SortValue::Number(b)) => {
            let key = |value: &Option<f64>| value.unwrap_or(f64::NEG_INFINITY);
            key(b).total_cmp(&key(a))
        }
        (SortValue::Text(a), SortValue::Text(b)) => a.cmp(b),
        (SortValue::Number(_), SortValue::Text(_)) => Ordering::Less,
        (SortValue::Text(_), SortValue::Number(_)) => Ordering::Greater,
    }
}
