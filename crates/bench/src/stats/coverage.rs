//! Whether 95 % intervals cover 95 %, on figures as storage gives them: skewed, each a mean of an autocorrelated run.

use rand::Rng;

use super::{Goal, Verdict, paired_ratios};
use crate::random;

/// Experiments of each kind.
const TRIALS: u64 = 4000;

/// What a run's intervals are drawn from.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// e to the power of an autocorrelated normal.
    LogNormal,
    /// Gamma draws, each mixed with the one before it.
    Gamma,
}

/// A run: the mean of 20 intervals, each leaning on the last, times a factor of the run's own (where the files came to
/// lie, what else the machine did).
fn run(kind: Kind, spread: f64, random: &mut impl Rng) -> f64 {
    let intervals = 20;
    let mut state = random::normal(random);
    let mut last = random::gamma(random, 1.0, 1.5);
    let mut sum = 0.0;
    for _ in 0..intervals {
        sum += match kind {
            Kind::LogNormal => {
                state = 0.7 * state + (1.0_f64 - 0.49).sqrt() * random::normal(random);
                (0.5 * state).exp()
            }
            Kind::Gamma => {
                last = 0.7 * last + 0.3 * random::gamma(random, 1.0, 1.5);
                last
            }
        };
    }
    sum / f64::from(intervals) * (spread * random::normal(random)).exp()
}

/// The median of many runs stands for the true one.
fn truth(kind: Kind, spread: f64) -> f64 {
    let mut random = random::stream(99, 7);
    let runs: Vec<f64> = (0..100_001)
        .map(|_| run(kind, spread, &mut random))
        .collect();
    super::median(&runs).expect("runs")
}

/// The share of experiments whose interval holds `truth`, and the mean number of repeats of one.
fn coverage(
    goal: &Goal,
    truth: f64,
    draw: impl Fn(&mut rand_chacha::ChaCha8Rng) -> f64,
) -> (f64, f64) {
    let (mut covered, mut made) = (0, 0);
    for trial in 0..TRIALS {
        let mut random = random::stream(trial, 3);
        let mut values = Vec::new();
        while let Verdict::More(count) = goal.verdict(&values) {
            values.resize_with(count, || draw(&mut random));
        }
        let interval = goal.interval(&values).expect("enough values");
        covered += u32::from((interval.low..=interval.high).contains(&truth));
        made += values.len();
    }
    let share = |count: f64| count / TRIALS as f64;
    (share(f64::from(covered)), share(made as f64))
}

fn fixed(count: usize) -> Goal {
    Goal {
        relative_half_width: 0.0,
        min: count,
        max: count,
    }
}

fn until(relative_half_width: f64, min: usize) -> Goal {
    Goal {
        relative_half_width,
        min,
        max: 100,
    }
}

fn check(what: &str, (covered, repeats): (f64, f64)) {
    println!(
        "{what}: {:.2} % of {TRIALS}, {repeats:.1} repeats",
        covered * 100.0
    );
    assert!((0.93..=0.97).contains(&covered), "{what}: {covered}");
}

#[test]
fn medians_of_a_fixed_number_of_repeats() {
    for kind in [Kind::LogNormal, Kind::Gamma] {
        let truth = truth(kind, 0.1);
        for count in [6, 7, 8, 10, 15, 30, 50] {
            let found = coverage(&fixed(count), truth, |random| run(kind, 0.1, random));
            check(&format!("{kind:?}, {count} repeats"), found);
        }
    }
}

#[test]
fn medians_of_repeats_made_until_the_interval_is_narrow() {
    for kind in [Kind::LogNormal, Kind::Gamma] {
        for spread in [0.02, 0.3] {
            let truth = truth(kind, spread);
            for (goal, min) in [
                (0.05, 6),
                (0.1, 6),
                (0.2, 6),
                (0.05, 10),
                (0.1, 10),
                (0.2, 10),
                (0.1, 15),
            ] {
                let found = coverage(&until(goal, min), truth, |random| run(kind, spread, random));
                check(
                    &format!("{kind:?}, spread {spread}, goal {goal}, min {min}"),
                    found,
                );
            }
        }
    }
}

#[test]
fn paired_ratios_made_until_the_interval_is_narrow() {
    for kind in [Kind::LogNormal, Kind::Gamma] {
        // Both have the same distribution but for the factor, so that the ratio's median is the factor.
        let pair = |random: &mut rand_chacha::ChaCha8Rng| {
            let (with, without) = (1.3 * run(kind, 0.1, random), run(kind, 0.1, random));
            paired_ratios(&[with], &[without]).expect("positive")[0]
        };
        for goal in [
            fixed(6),
            fixed(10),
            fixed(25),
            until(0.1, 6),
            until(0.1, 10),
            until(0.05, 10),
        ] {
            check(
                &format!("{kind:?}, pairs, {goal:?}"),
                coverage(&goal, 1.3, pair),
            );
        }
    }
}
