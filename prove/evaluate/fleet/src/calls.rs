//! Counts of calls, by whether they are assigned to the request that they were made for.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::answer::{RequestRow, Rows};

/// Counts of calls, by the judgement and its evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Calls {
    pub(crate) calls: u64,
    /// Right calls, by the evidence.
    pub(crate) right: BTreeMap<String, u64>,
    /// Wrong calls, by the evidence.
    pub(crate) wrong: BTreeMap<String, u64>,
    /// Calls that are assigned to no request.
    pub(crate) unknown: u64,
    /// Calls that the answer lacks.
    pub(crate) missing: u64,
}

impl Calls {
    pub(crate) fn all_right(&self) -> u64 {
        self.right.values().sum()
    }

    fn all_wrong(&self) -> u64 {
        self.wrong.values().sum()
    }

    /// Counts a call, whose row is `row`. `is_cause` says whether a request is the one that it was made for.
    pub(crate) fn count(
        &mut self,
        row: Option<&RequestRow>,
        rows: &Rows,
        is_cause: impl FnOnce(&RequestRow) -> bool,
    ) {
        self.calls += 1;
        let Some(row) = row else {
            self.missing += 1;
            return;
        };
        let cause = row.made_for.and_then(|number| rows.requests.get(number));
        let Some(cause) = cause else {
            self.unknown += 1;
            return;
        };
        let of = if is_cause(cause) { &mut self.right } else { &mut self.wrong };
        *of.entry(row.evidence.clone().unwrap_or_default()).or_default() += 1;
    }

    /// Describes the counts in a few words.
    pub(crate) fn brief(&self) -> String {
        format!(
            "of {} calls {} right ({}), {} wrong ({}), {} unknown, {} missing",
            self.calls,
            self.all_right(),
            words(&self.right),
            self.all_wrong(),
            words(&self.wrong),
            self.unknown,
            self.missing
        )
    }
}

/// Lists counts by evidence.
fn words(counts: &BTreeMap<String, u64>) -> String {
    let words = counts.iter().map(|(evidence, count)| format!("{count} {evidence}"));
    let words: Vec<String> = words.collect();
    if words.is_empty() { "0".to_owned() } else { words.join(", ") }
}
