//! Part `powercut`: whether an acknowledged fsync is durable under the gate. `rivals` tries other file systems,
//! `notified` calls that are notified.

pub(super) mod notified;
pub(super) mod rivals;

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target};
use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::harness::{Harness, count, line, missing};
use crate::progress::Progress;

/// Number of cuts in each trial.
const CUTS: u64 = 150;
/// Minimum number of cuts in all trials together.
const MIN_CUTS: u64 = 400;
/// Minimum number of acknowledged fsyncs in all trials together.
const MIN_ACKNOWLEDGED: u64 = 400_000;
/// Number of cuts in the trial that must find losses.
const UNSAFE_CUTS: u64 = 5;
/// Number of cuts in one `luc powercut`, so that the progress moves and a signal loses little.
const CHUNK: u64 = 10;

/// Counts over the cuts of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) rounds: u64,
    pub(super) acknowledged: u64,
    pub(super) lost: u64,
    pub(super) torn: u64,
    pub(super) not_mountable: u64,
    pub(super) fsck_unclean: u64,
}

impl Tally {
    /// Sum of the counts that should be 0.
    fn bad(&self) -> u64 {
        self.lost + self.torn + self.not_mountable + self.fsck_unclean
    }

    /// Claims that nothing is lost, torn, not mountable or unclean.
    pub(super) fn claim_clean(&self, setting: &str) -> Target {
        let what = format!("{setting}: nothing lost, torn, not mountable or unclean");
        Target::new(what, self.bad() == 0, self.text())
    }

    pub(super) fn cells(&self) -> Vec<String> {
        let Self { rounds, acknowledged, lost, torn, not_mountable, fsck_unclean } = self;
        cells![rounds, acknowledged, lost, torn, not_mountable, fsck_unclean]
    }

    pub(super) fn text(&self) -> String {
        format!(
            "{} lost, {} torn, {} not mountable, {} unclean, of {} acknowledged in {} cuts",
            self.lost,
            self.torn,
            self.not_mountable,
            self.fsck_unclean,
            self.acknowledged,
            self.rounds
        )
    }

    /// Adds a report of `luc powercut --json`.
    pub(super) fn add(&mut self, report: &Value) -> Result<(), EvaluateError> {
        for (sum, key) in [
            (&mut self.rounds, "rounds"),
            (&mut self.acknowledged, "acknowledged"),
            (&mut self.lost, "lost"),
            (&mut self.torn, "torn"),
            (&mut self.not_mountable, "not_mountable"),
            (&mut self.fsck_unclean, "fsck_unclean"),
        ] {
            *sum += count(report, key)?;
        }
        Ok(())
    }
}

/// Heads of the columns of [`Tally::cells`].
pub(super) const HEADS: [&str; 6] =
    ["cuts", "acknowledged", "lost", "torn", "not mountable", "unclean"];

/// Number of progress steps in a trial of `cuts` cuts.
fn steps(cuts: u64) -> usize {
    cuts.div_ceil(CHUNK) as usize
}

/// Cuts the power `cuts` times under `luc powercut WORDS`.
fn trial(
    harness: &Harness,
    cell: &str,
    words: &[&str],
    cuts: u64,
    progress: &mut Progress,
) -> Result<Tally, EvaluateError> {
    let mut tally = Tally::default();
    while tally.rounds < cuts {
        let rounds = CHUNK.min(cuts - tally.rounds).to_string();
        let seed = (harness.options.seed + tally.rounds).to_string();
        let mut all = vec!["powercut", "--rounds", &rounds, "--seed", &seed, "--json"];
        all.extend(words);
        let before = tally.rounds;
        let report = harness.json(&all)?;
        tally.add(&report)?;
        if tally.rounds == before {
            return Err(missing("a round of luc powercut"));
        }
        progress.step(&format!("{cell}: {}", tally.text()));
        harness
            .keep(json!({ "cell": cell, "command": line(&harness.luc(&all)), "powercut": report }));
    }
    Ok(tally)
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let cuts = harness.options.cuts.unwrap_or(CUTS);
    let unsafe_cuts = UNSAFE_CUTS.min(cuts);
    let words =
        |policy, more: &[&'static str]| [&["--clients", "64", "--policy", policy], more].concat();
    let trials: Vec<(&str, Vec<&str>, u64)> = [
        ("64 threads, auto", words("auto", &[]), cuts),
        ("64 processes, auto", words("auto", &["--processes"]), cuts),
        ("64 threads, pid", words("pid", &[]), cuts),
        ("64 processes, pid", words("pid", &["--processes"]), cuts),
        ("64 threads that skip fsync", words("auto", &["--unsafe-no-fsync"]), unsafe_cuts),
    ]
    .into_iter()
    .filter(|(cell, ..)| harness.options.wants(cell))
    .collect();
    let mut progress = Progress::new(harness.part, trials.iter().map(|trial| steps(trial.2)).sum());
    let mut table = Table::new(&[&["clients"], &HEADS[..]].concat());
    let mut all = Tally::default();
    let mut targets = Vec::new();
    for (cell, words, cuts) in &trials {
        let tally = trial(harness, cell, words, *cuts, &mut progress)?;
        table.row([vec![(*cell).to_owned()], tally.cells()].concat());
        if words.contains(&"--unsafe-no-fsync") {
            let found = tally.lost + tally.torn > 0;
            let what = "the trial finds the losses of clients that skip fsync";
            targets.push(Target::new(what, found, tally.text()));
        } else {
            all.acknowledged += tally.acknowledged;
            all.rounds += tally.rounds;
            targets.push(tally.claim_clean(cell));
        }
    }
    targets.push(Target::new(
        format!("at least {MIN_CUTS} cuts and {MIN_ACKNOWLEDGED} acknowledged fsyncs"),
        all.rounds >= MIN_CUTS && all.acknowledged >= MIN_ACKNOWLEDGED,
        format!("{} cuts, {} acknowledged", all.rounds, all.acknowledged),
    ));
    Ok(Page {
        title: "Power cuts".to_owned(),
        about:
            "Each cut makes a fresh emulated disk with ext4, lets 64 clients under `luc run` write \
            files, fsync them and say so, cuts the power after 0.1 to 1 s, mounts what is left, \
            checks every acknowledged file, and runs the file system's checker. Policy auto may \
            still be learning when the power goes; policy pid gates from the start. A last trial \
            lets the clients skip their fsyncs, to show that losses are found."
                .to_owned(),
        tables: vec![("What the cuts came to:".to_owned(), table)],
        targets,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up() {
        let report = json!({ "rounds": 10, "acknowledged": 100, "lost": 1, "torn": 2,
                             "not_mountable": 3, "fsck_unclean": 4 });
        let mut tally = Tally::default();
        tally.add(&report).expect("figures");
        tally.add(&report).expect("figures");
        assert_eq!((tally.rounds, tally.acknowledged, tally.bad()), (20, 200, 20));
        assert!(tally.add(&json!({})).is_err());
        assert_eq!((steps(5), steps(100), steps(101)), (1, 10, 11));
    }
}
