//! Tests that 95 % intervals cover 95 %.

use super::simulated_coverage::{CoverageCase, Estimand, TRIALS, cases};

fn check(which: impl Fn(&CoverageCase) -> bool) {
    let chosen: Vec<CoverageCase> = cases().into_iter().filter(which).collect();
    assert!(!chosen.is_empty());
    for case in chosen {
        let found = case.simulate(case.truth());
        let share = found.share;
        println!("{case}: {share} of {TRIALS}, {:.1} repeats", found.repeats);
        assert!((0.93..=0.97).contains(&share), "{case}: {share}");
    }
}

#[test]
fn medians_of_a_fixed_number_of_repeats() {
    check(|case| case.figure == Estimand::Median && case.goal.min == case.goal.max);
}

#[test]
fn medians_of_repeats_made_until_the_interval_is_narrow() {
    check(|case| case.figure == Estimand::Median && case.goal.min < case.goal.max);
}

#[test]
fn paired_ratios_made_until_the_interval_is_narrow() {
    check(|case| case.figure == Estimand::Ratio);
}
