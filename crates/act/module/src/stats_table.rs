//! The module's figures as a table for people: a line per journal.

use std::fmt::{self, Write as _};

use luc_units::number_formats::FormattedTime;

use crate::journal_stats::JournalStats;

/// A line of the table: one journal.
#[derive(Clone, Debug)]
pub struct StatsRow {
    /// Mount point of the file system; `-` if it is not known.
    pub mount_point: String,
    /// jbd2's name of the journal.
    pub journal: String,
    pub policy: String,
    pub copy_out: String,
    /// Number of runs that lend its settings now.
    pub lent: usize,
    /// Its figures; `None` for a user who may not read them.
    pub stats: Option<JournalStats>,
}

/// All lines, under their heads.
#[derive(Clone, Copy, Debug)]
pub struct StatsTable<'r>(pub &'r [StatsRow]);

const HEADINGS: [&str; 11] = [
    "MOUNTED ON",
    "JOURNAL",
    "POLICY",
    "COPY-OUT",
    "STATE",
    "COMMITS",
    "FSYNCS",
    "PER COMMIT",
    "HELD",
    "DELAYED",
    "COPIES",
];
/// Number of leading columns with words, aligned to the left. The others have numbers, aligned to the right.
const WORD_COLUMNS: usize = 5;
/// Number of leading columns with settings. The others come from figures.
const SETTING_COLUMNS: usize = 4;

impl StatsRow {
    fn cells(&self) -> [String; HEADINGS.len()] {
        let lent = if self.lent > 0 { "*" } else { "" };
        let words = [
            self.mount_point.clone(),
            self.journal.clone(),
            format!("{}{lent}", self.policy),
            self.copy_out.clone(),
        ];
        let figures = match &self.stats {
            Some(stats) => self.figures(stats),
            None => std::array::from_fn(|_| "-".to_owned()),
        };
        let mut cells = words.into_iter().chain(figures);
        std::array::from_fn(|_| cells.next().unwrap_or_default())
    }

    fn figures(&self, stats: &JournalStats) -> [String; HEADINGS.len() - SETTING_COLUMNS] {
        [
            // Under the other policies there is nothing to decide.
            if self.policy == "auto" { stats.state.clone() } else { "-".to_owned() },
            stats.commits.to_string(),
            stats.fsyncs.to_string(),
            or_dash(stats.fsyncs_per_commit(), |n| format!("{n:.1}")),
            or_dash(stats.mean_hold_ns(), |ns| format!("{} x {}", stats.holds, FormattedTime(ns))),
            or_dash(stats.delayed_share(), |share| {
                format!("{} ({:.1} %)", stats.writes_delayed, share * 100.0)
            }),
            if stats.copies_failed > 0 {
                format!("{} ({} failed)", stats.copies, stats.copies_failed)
            } else {
                stats.copies.to_string()
            },
        ]
    }
}

impl fmt::Display for StatsTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = HEADINGS.map(str::to_owned);
        let lines: Vec<_> =
            std::iter::once(heads).chain(self.0.iter().map(StatsRow::cells)).collect();
        let mut widths = [0; HEADINGS.len()];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for line in &lines {
            let mut text = String::new();
            for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
                if column < WORD_COLUMNS {
                    write!(text, "{cell:<width$}  ")?;
                } else {
                    write!(text, "{cell:>width$}  ")?;
                }
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        if self.0.iter().any(|row| row.lent > 0) {
            writeln!(f, "* lent to a running `luc run`, and restored after it")?;
        }
        if self.0.iter().any(|row| row.stats.is_none()) {
            writeln!(f, "only root may read the figures: run it with sudo")?;
        }
        Ok(())
    }
}

fn or_dash(number: Option<f64>, text: impl Fn(f64) -> String) -> String {
    number.map_or_else(|| "-".to_owned(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_their_heads() {
        let row = |mount_point: &str, stats| StatsRow {
            mount_point: mount_point.into(),
            journal: "loop0-8".into(),
            policy: "auto".into(),
            copy_out: "off".into(),
            lent: 0,
            stats: Some(stats),
        };
        let busy = JournalStats {
            commits: 12,
            commits_by_fsync: 10,
            fsyncs: 155,
            holds: 9,
            hold_ns: 9 * 372_000,
            writes: 200,
            writes_delayed: 3,
            state: "engaged".into(),
            ..JournalStats::default()
        };
        let rows = [row("/srv/mail", busy), row("/", JournalStats::default())];
        let text = StatsTable(&rows).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        for (head, value) in
            [("PER COMMIT", "15.5"), ("HELD", "9 x 372 us"), ("DELAYED", "3 (1.5 %)")]
        {
            let end = |line: &str, what: &str| line.find(what).map(|at| at + what.len());
            assert_eq!(end(lines[0], head), end(lines[1], value), "{text}");
        }
        assert!(lines[2].starts_with("/ ") && lines[2].contains(" - "), "{text}");
        assert!(!text.contains('*'));
    }

    #[test]
    fn a_lent_journal_is_marked_and_explained() {
        let rows = [StatsRow {
            mount_point: "/".into(),
            journal: "sda1-8".into(),
            policy: "pid".into(),
            copy_out: "on".into(),
            lent: 2,
            stats: None,
        }];
        let text = StatsTable(&rows).to_string();
        assert!(text.contains("pid*") && text.contains("restored after it"), "{text}");
        assert!(text.contains(" - ") && text.contains("with sudo"), "{text}");
    }
}
