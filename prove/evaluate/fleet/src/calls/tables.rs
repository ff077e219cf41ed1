//! Tables of calls, and their targets.

use luc_harness::report::{Table, Target};
use luc_stats::share_interval;

use super::{Calls, words};

/// Calls of all runs of a setting.
#[derive(Debug)]
pub(crate) struct Row {
    /// First cells: the setting, and the number of requests.
    pub(crate) cells: Vec<String>,
    pub(crate) counts: Calls,
    pub(crate) lost_rows: u64,
}

impl Row {
    /// Sums runs, each by its calls and the rows that the recorder lost.
    pub(crate) fn sum<'c>(
        cells: impl Into<Vec<String>>,
        runs: impl Iterator<Item = (&'c Calls, u64)>,
    ) -> Self {
        let mut row = Self { cells: cells.into(), counts: Calls::default(), lost_rows: 0 };
        for (counts, lost_rows) in runs {
            row.counts.add(counts);
            row.lost_rows += lost_rows;
        }
        row
    }
}

/// Makes the table of the calls' shares. `heads` are those of the rows' first cells.
pub(crate) fn of_shares(heads: &[&str], rows: &[Row]) -> Table {
    let of_counts = ["calls", "right", "wrong", "unknown", "missing", "rows lost"];
    let mut table = Table::new(&[heads, &of_counts].concat());
    for row in rows {
        let counts = &row.counts;
        let share = |part| share_of(part, counts.calls);
        let of_counts = [
            counts.calls.to_string(),
            share(counts.all_right()),
            share(counts.all_wrong()),
            share(counts.unknown),
            share(counts.missing),
            row.lost_rows.to_string(),
        ];
        table.row([&row.cells[..], &of_counts].concat());
    }
    table
}

/// Makes the table of the evidence. `head` is that of the rows' first cell.
pub(crate) fn of_evidence(head: &str, rows: &[Row]) -> Table {
    let mut table = Table::of_words(&[head, "right", "wrong"]);
    for row in rows {
        table.row(vec![
            row.cells.first().cloned().unwrap_or_default(),
            words(&row.counts.right),
            words(&row.counts.wrong),
        ]);
    }
    table
}

/// Formats a share with its 95 % score interval, in %.
pub(crate) fn share_of(part: u64, all: u64) -> String {
    let percent = |share: f64| format!("{:.2}", share * 100.0);
    share_interval(part, all).map_or_else(
        || "-".to_owned(),
        |(low, high)| {
            let share = percent(part as f64 / all as f64);
            format!("{share} % ({} to {})", percent(low), percent(high))
        },
    )
}

/// Targets of calls in %: the minimum share of right ones, and the maximum of wrong ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owed {
    pub(crate) right: f64,
    pub(crate) wrong: f64,
}

impl Owed {
    /// Makes the targets of a setting's calls.
    pub(crate) fn targets(self, name: &str, counts: &Calls) -> [Target; 2] {
        let (right, wrong) = (counts.all_right(), counts.all_wrong());
        let percent = |part: u64| part as f64 * 100.0 / counts.calls.max(1) as f64;
        let has_calls = counts.calls > 0;
        [
            Target::new(
                format!("{name}: at least {} % of the calls are right", self.right),
                has_calls && percent(right) >= self.right,
                format!("{right} of {}", counts.calls),
            ),
            Target::new(
                format!("{name}: at most {} % of the calls are wrong", self.wrong),
                has_calls && percent(wrong) <= self.wrong,
                format!("{wrong} of {}", counts.calls),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn shares_have_intervals() {
        assert_eq!(share_of(1, 29), "3.45 % (0.61 to 17.18)");
        assert_eq!(share_of(0, 0), "-");
    }

    #[test]
    fn nearly_all_calls_must_be_right_and_hardly_any_wrong() {
        let met = |owed: Owed, right, wrong, calls| {
            let of = |count| BTreeMap::from([("effect".to_owned(), count)]);
            let counts = Calls { calls, right: of(right), wrong: of(wrong), ..Calls::default() };
            owed.targets("x", &counts).map(|target| target.met)
        };
        let [strict, lax] = [(99.7, 0.2), (99.0, 0.5)].map(|(right, wrong)| Owed { right, wrong });
        assert_eq!(met(strict, 997, 2, 1000), [Some(true), Some(true)]);
        assert_eq!(met(strict, 996, 3, 1000), [Some(false), Some(false)]);
        assert_eq!(met(lax, 990, 5, 1000), [Some(true), Some(true)]);
        assert_eq!(met(lax, 989, 6, 1000), [Some(false), Some(false)]);
        assert_eq!(met(lax, 0, 0, 0), [Some(false), Some(false)]);
    }

    #[test]
    fn runs_of_a_setting_are_one_row() {
        let run = Calls {
            calls: 3,
            right: [("effect".to_owned(), 2)].into(),
            unknown: 1,
            ..Calls::default()
        };
        let row = Row::sum(["a".to_owned()], [(&run, 4), (&run, 5)].into_iter());
        assert_eq!((row.counts.calls, row.counts.all_right()), (6, 4));
        assert_eq!((row.counts.unknown, row.lost_rows), (2, 9));
    }
}
