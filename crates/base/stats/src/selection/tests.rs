//! Tests that conclusions of a selection are true, and as often as they claim.

use proptest::prelude::*;

use super::*;
use crate::seeded_random;
use crate::simulated_coverage::{CoverageCase, cases};

/// Experiments of each simulation.
const TRIALS: u64 = 1000;

fn candidate(options: &str, rates: Vec<f64>) -> MeasuredCandidate {
    MeasuredCandidate {
        file_system: "ext4".to_owned(),
        options: options.to_owned(),
        is_default: options == "default",
        danger: None,
        rates,
        per_joule: Vec::new(),
    }
}

fn chosen(candidates: &[MeasuredCandidate]) -> CandidateSelection {
    select(candidates, SelectionTerms::default()).expect("a selection")
}

/// Storage-like runs: skewed, autocorrelated within.
fn storage() -> Vec<CoverageCase> {
    let mut found: Vec<CoverageCase> = Vec::new();
    for case in cases() {
        if case.spread == 0.1 && found.iter().all(|other| other.kind != case.kind) {
            found.push(case);
        }
    }
    assert_eq!(found.len(), 2);
    found
}

/// `factors` are how many times as fast each candidate truly is; every round has a drift of its own, that all share.
fn simulated(
    case: &CoverageCase,
    factors: &[f64],
    rounds: usize,
    trial: u64,
) -> Vec<MeasuredCandidate> {
    let mut random = seeded_random::stream(trial, 11);
    let mut candidates: Vec<MeasuredCandidate> =
        (0..factors.len()).map(|at| candidate(&format!("o{at}"), Vec::new())).collect();
    for _ in 0..rounds {
        let drift = (0.3 * seeded_random::normal(&mut random)).exp();
        for (candidate, factor) in candidates.iter_mut().zip(factors) {
            candidate.rates.push(1000.0 * factor * drift * case.run(&mut random));
        }
    }
    candidates
}

#[test]
fn where_there_is_no_difference_none_is_found() {
    for case in storage() {
        for (count, rounds) in [(2, 3), (8, 3), (8, 6), (12, 10), (3, 30)] {
            let found = (0..TRIALS)
                .filter(|&trial| {
                    let candidates = simulated(&case, &vec![1.0; count], rounds, trial);
                    chosen(&candidates).rate.verdict != SelectionVerdict::NoSignificantDifference
                })
                .count();
            let share = found as f64 / TRIALS as f64;
            println!("{count} candidates, {rounds} rounds: {share} found a difference");
            // 5 % and three standard deviations of so many experiments.
            assert!(share <= 0.07, "{count} candidates, {rounds} rounds: {share}");
        }
    }
}

#[test]
fn a_true_difference_is_found_and_by_how_much() {
    for case in storage() {
        let factors = [1.0, 2.5, 1.0, 1.05, 0.9, 0.5];
        let (mut is_found, mut all_hold) = (0, 0);
        for trial in 0..TRIALS {
            let selection = chosen(&simulated(&case, &factors, 12, trial));
            let rate = &selection.rate;
            is_found += u32::from(rate.best == 1 && rate.verdict == SelectionVerdict::Best);
            let holds = |found: &CandidateComparison| {
                let truth = factors[rate.best] / factors[found.against];
                found.low <= truth && truth <= found.high
            };
            all_hold += u32::from(rate.comparisons.iter().all(holds));
        }
        let (is_found, all_hold) =
            (f64::from(is_found) / TRIALS as f64, f64::from(all_hold) / TRIALS as f64);
        println!("found {is_found}, all intervals hold {all_hold}");
        assert!(is_found > 0.95, "{is_found}");
        assert!(all_hold > 0.93, "{all_hold}");
    }
}

#[test]
fn the_truly_best_is_the_best_or_as_good() {
    for case in storage() {
        let factors = [1.0, 1.03, 1.06, 1.1, 0.7];
        let is_there = (0..TRIALS)
            .filter(|&trial| {
                let selection = chosen(&simulated(&case, &factors, 6, trial));
                selection.rate.is_among_the_best(3)
            })
            .count();
        let share = is_there as f64 / TRIALS as f64;
        assert!(share > 0.95, "{share}");
    }
}

#[test]
fn what_loses_data_is_never_best() {
    let mut fast = candidate("no journal", vec![900.0, 910.0, 905.0, 900.0]);
    fast.danger = Some("no journal".to_owned());
    let slow = candidate("default", vec![100.0, 101.0, 99.0, 100.0]);
    let selection = chosen(&[fast.clone(), slow]);
    assert_eq!(selection.rate.best, 1);
    assert!(selection.rate.as_good.is_empty());
    assert_eq!(selection.rate.comparisons[0].best_is, ComparisonVerdict::Worse);
    assert_eq!(selection.rate.verdict, SelectionVerdict::NoSignificantDifference);
    let text = selection.text("operations/s").to_string();
    assert!(text.contains("UNSAFE: no journal"), "{text}");
    assert!(text.contains("faster than the best"), "{text}");
    assert_eq!(select(&[fast], SelectionTerms::default()), Err(SelectionError::TooFew));
}

#[test]
fn a_default_that_is_as_good_is_kept() {
    let rates = vec![100.0, 104.0, 96.0, 102.0, 99.0, 101.0];
    let mut tuned = rates.clone();
    tuned.rotate_left(2);
    tuned.iter_mut().for_each(|rate| *rate *= 1.01);
    let slow: Vec<f64> = rates.iter().map(|rate| rate / 3.0).collect();
    let selection =
        chosen(&[candidate("default", rates), candidate("tuned", tuned), candidate("slow", slow)]);
    let rate = &selection.rate;
    assert_eq!((rate.best, rate.keep), (1, Some(0)));
    assert_eq!(rate.verdict, SelectionVerdict::OneOfSeveral);
    assert_eq!(rate.as_good, [0]);
    let text = selection.text("operations/s").to_string();
    assert!(
        text.starts_with(
            "operations/s: best: ext4 tuned, with no significant difference to ext4 default\n"
        ),
        "{text}"
    );
}

#[test]
fn few_rounds_are_a_range_and_none_a_dash() {
    let selection = chosen(&[
        candidate("a", vec![10.0, 11.0, 12.0]),
        candidate("b", vec![10.0, 11.0]),
        candidate("c", Vec::new()),
    ]);
    let rate = &selection.rate;
    assert_eq!((rate.best, rate.unjudged.as_slice()), (0, &[1, 2][..]));
    let figure = rate.figures[0].expect("a figure");
    assert_eq!((figure.low, figure.high, figure.bounds), (10.0, 12.0, BoundsKind::Range));
    assert_eq!(rate.figures[2], None);
    let text = selection.text("files/s").to_string();
    assert!(text.contains("only ext4 a was measured enough"), "{text}");
    assert!(text.contains("[10.00 to 12.00]"), "{text}");
}

#[test]
fn energy_is_ranked_by_itself() {
    let mut fast = candidate("fast", vec![200.0, 210.0, 205.0, 201.0]);
    let mut thrifty = candidate("thrifty", vec![100.0, 99.0, 101.0, 102.0]);
    assert_eq!(chosen(&[fast.clone(), thrifty.clone()]).per_joule, None);
    fast.per_joule = vec![Some(1.0), None, Some(1.01), Some(0.99)];
    thrifty.per_joule = vec![Some(5.0), Some(5.1), Some(4.9), Some(5.0)];
    let selection = chosen(&[fast.clone(), thrifty]);
    assert_eq!(selection.rate.best, 0);
    let per_joule = selection.per_joule.as_ref().expect("enough of it");
    assert_eq!((per_joule.best, per_joule.comparisons[0].rounds), (1, 3));
    let text = selection.text("files/s").to_string();
    assert!(text.contains("\nfiles/J: "), "{text}");
    fast.rates[0] = 0.0;
    assert_eq!(
        select(&[fast], SelectionTerms::default()),
        Err(SelectionError::NotPositive("ext4 fast".to_owned()))
    );
}

#[test]
fn every_look_makes_intervals_wider() {
    let case = storage()[0];
    let candidates = simulated(&case, &[1.0, 1.2, 1.1], 5, 1);
    let one = chosen(&candidates);
    let terms = SelectionTerms { looks: 4, ..SelectionTerms::default() };
    let four = select(&candidates, terms).expect("a selection");
    for (narrow, wide) in one.rate.comparisons.iter().zip(&four.rate.comparisons) {
        assert!(wide.low < narrow.low && narrow.high < wide.high);
    }
    let json = serde_json::to_value(&four).expect("JSON");
    assert_eq!(json["terms"]["looks"], 4);
    assert_eq!(json["rate"]["comparisons"][0]["method"], "log_t");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn of_one_piece(
        rates in prop::collection::vec(prop::collection::vec(1.0_f64..1e6, 0..15), 1..10),
        scale in 0.01_f64..100.0,
    ) {
        let candidates: Vec<MeasuredCandidate> = rates
            .iter()
            .enumerate()
            .map(|(at, rates)| candidate(&format!("o{at}"), rates.clone()))
            .collect();
        let Ok(selection) = select(&candidates, SelectionTerms::default()) else {
            prop_assert!(rates.iter().all(|rates| rates.len() < MIN_ROUNDS));
            return Ok(());
        };
        let rate = &selection.rate;
        let others = rate.comparisons.len() + rate.unjudged.len();
        prop_assert_eq!(others + 1, candidates.len());
        for found in &rate.comparisons {
            prop_assert!(found.low <= found.ratio && found.ratio <= found.high);
            prop_assert_eq!(rate.as_good.contains(&found.against), found.best_is != ComparisonVerdict::Better);
        }
        // What it is counted in changes nothing.
        let scaled: Vec<MeasuredCandidate> = candidates
            .iter()
            .map(|candidate| {
                let mut candidate = candidate.clone();
                candidate.rates.iter_mut().for_each(|rate| *rate *= scale);
                candidate
            })
            .collect();
        let again = chosen(&scaled);
        prop_assert_eq!(again.rate.verdict, rate.verdict);
        prop_assert_eq!(&again.rate.as_good, &rate.as_good);
    }
}
