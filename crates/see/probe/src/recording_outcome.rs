//! The result of a recording.

use std::collections::BTreeMap;

/// The result of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingOutcome {
    pub rows: BTreeMap<&'static str, u64>,
    /// Events that could not be kept, by place.
    pub lost: BTreeMap<&'static str, u64>,
    /// Lost events that a program missed because it was already active on that processor, by table.
    pub missed: BTreeMap<&'static str, u64>,
}

impl RecordingOutcome {
    pub(crate) fn count(&mut self, table: &'static str, rows: u64) {
        *self.rows.entry(table).or_default() += rows;
    }

    pub(crate) fn lose(&mut self, place: &'static str, count: u64) {
        *self.lost.entry(place).or_default() += count;
    }

    pub(crate) fn miss(&mut self, table: &'static str, count: u64) {
        *self.missed.entry(table).or_default() += count;
        self.lose(table, count);
    }
}
