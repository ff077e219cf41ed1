//! Part `powercut`: whether an acknowledged fsync is durable under the gate. `rivals` tries other file systems,
//! `notified` calls that are notified.

pub(super) mod notified;
pub(super) mod rivals;

use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::harness::{Harness, count, line, missing};
use crate::progress::Progress;

/// Number of cuts in each trial.
const CUTS: u64 = 150;
/// Number of cuts in the trial that must find losses.
const UNSAFE_CUTS: u64 = 5;
/// Number of cuts in one `luc powercut`, so that the progress moves and a signal loses little.
const CHUNK: u64 = 10;

/// Counts over the cuts of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) rounds: u64,
    acknowledged: u64,
    lost: u64,
    torn: u64,
    not_mountable: u64,
    fsck_unclean: u64,
}

impl Tally {
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
) -> Result<(), EvaluateError> {
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
    Ok(())
}

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
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
    for (cell, words, cuts) in &trials {
        trial(harness, cell, words, *cuts, &mut progress)?;
    }
    Ok(())
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
        assert_eq!((tally.rounds, tally.acknowledged, tally.lost, tally.torn), (20, 200, 2, 4));
        assert!(tally.add(&json!({})).is_err());
        assert_eq!((steps(5), steps(100), steps(101)), (1, 10, 11));
    }
}
