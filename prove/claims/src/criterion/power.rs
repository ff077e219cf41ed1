//! Rounds that a criterion needs, by the scatter of a round.

use luc_harness::report::Fact;

use super::simulated::{Estimator, RoundNoise, Simulation, passes};
use super::{ComparedRatio, Criterion};

/// Share of the pages of a side without loss that meet their target.
pub const POWER: f64 = 0.9;

/// Few rounds, the least with an interval first. Intervals from order statistics are wider with 8 rounds than with 7.
const FEW_ROUNDS: [usize; 8] = [5, 6, 7, 8, 9, 10, 11, 12];
const MORE_ROUNDS: [usize; 20] =
    [14, 16, 18, 20, 25, 30, 35, 40, 50, 60, 80, 100, 120, 150, 200, 250, 300, 400, 600, 1000];

/// Share above [`POWER`] that a simulation must show, three times its error.
const POWER_MARGIN: f64 = 0.02;

/// Simulated pages for each number of rounds.
const TRIALS: u64 = 2000;

/// Returns the least number of rounds at which a side without loss passes with a probability of [`POWER`]. The noise is log-normal with this scatter. `None`: 1000 are not enough.
pub fn rounds_needed(scatter: f64, criterion: &Criterion) -> Option<usize> {
    let is_enough = |rounds: &usize| {
        let simulation = Simulation {
            noise: &RoundNoise::log_normal(scatter),
            estimator: Estimator::MedianOfRatios,
            rounds: *rounds,
            trials: TRIALS,
            seed: 1,
        };
        let is_met = |compared: &ComparedRatio| criterion.is_met(compared);
        passes(&simulation, &[1.0], &[is_met])[0][0] >= POWER + POWER_MARGIN
    };
    let few = FEW_ROUNDS.iter().rev().take_while(|rounds| is_enough(rounds)).last();
    few.or_else(|| MORE_ROUNDS.get(MORE_ROUNDS.partition_point(|rounds| !is_enough(rounds))))
        .copied()
}

/// A target's name and the ratio that it judges.
#[derive(Debug, Clone)]
pub struct Judgement {
    pub name: String,
    pub compared: ComparedRatio,
}

/// Says how much rounds scatter, how many rounds are needed, and how many there were. `None` without a target.
pub fn fact(judgements: &[Judgement], criterion: &Criterion) -> Option<Fact> {
    let needs = |judgement: &Judgement| rounds_needed(judgement.compared.scatter, criterion);
    let needed: Vec<Option<usize>> = judgements.iter().map(needs).collect();
    // An unknown number is above all others.
    let most = |rounds: Option<usize>| rounds.unwrap_or(usize::MAX);
    let at = (0..needed.len()).max_by_key(|&at| (most(needed[at]), std::cmp::Reverse(at)))?;
    let least = needed.iter().copied().min_by_key(|&rounds| most(rounds))?;
    let scatters = || judgements.iter().map(|judgement| 100.0 * judgement.compared.scatter);
    let made = || judgements.iter().map(|judgement| judgement.compared.rounds);
    let enough = made().zip(&needed).filter(|(made, needed)| *made >= most(**needed)).count();
    let known = |rounds: Option<usize>| {
        rounds.map_or_else(|| "more than 1000".to_owned(), |rounds| rounds.to_string())
    };
    let figure = format!(
        "{} made; a ratio scatters by {} % from round to round (standard deviation of its logarithm), so that {} are \
         needed{}; enough for {enough} of {}",
        range(made().min()?.to_string(), made().max()?.to_string()),
        range(
            format!("{:.2}", scatters().fold(f64::INFINITY, f64::min)),
            format!("{:.2}", scatters().fold(0.0, f64::max)),
        ),
        range(known(least), known(needed[at])),
        if least == needed[at] {
            String::new()
        } else {
            format!(", most by {}", judgements[at].name)
        },
        needed.len(),
    );
    let what = format!(
        "rounds with which a side without loss is found not slower {:.0} times in 100",
        POWER * 100.0
    );
    Some(Fact::new(what, figure))
}

fn range(least: String, most: String) -> String {
    if least == most { least } else { format!("{least} to {most}") }
}

#[cfg(test)]
mod tests {
    use super::super::{NOT_SLOWER, SURELY_NOT_SLOWER};
    use super::*;

    /// Returns the rounds that the normal approximation of the median's error needs.
    fn approximately(scatter: f64, largest_error: f64) -> f64 {
        (std::f64::consts::FRAC_PI_2.sqrt() * scatter / largest_error).powi(2)
    }

    #[test]
    fn rounds_are_those_of_the_normal_approximation() {
        for scatter in [0.05, 0.1, 0.2] {
            // 1.96 errors to the lower end and 1.28 to a tenth of the pages are ln(1 / 0.95), and 1.28 are ln(1 / 0.98).
            let expected = approximately(scatter, 0.0202 / 1.2816);
            let found = rounds_needed(scatter, &NOT_SLOWER).expect("known") as f64;
            assert!((1.0..1.8).contains(&(found / expected)), "{scatter}: {found}, {expected}");
            let expected = approximately(scatter, 0.0202 / (0.8416 + 1.2816));
            let found = rounds_needed(scatter, &SURELY_NOT_SLOWER).expect("known") as f64;
            assert!((1.0..1.8).contains(&(found / expected)), "{scatter}: {found}, {expected}");
        }
        assert_eq!(rounds_needed(0.0, &NOT_SLOWER), Some(5));
        assert_eq!(rounds_needed(2.0, &NOT_SLOWER), None);
    }

    #[test]
    fn a_page_says_it_in_a_line() {
        let judgement = |name: &str, scatter: f64, rounds: usize| {
            let ratios: Vec<f64> = (0..rounds).map(|at| 1.0 + (at % 2) as f64 * 0.001).collect();
            let compared = ComparedRatio::of_ratios(&ratios).expect("rounds");
            Judgement { name: name.to_owned(), compared: ComparedRatio { scatter, ..compared } }
        };
        assert_eq!(fact(&[], &NOT_SLOWER), None);
        let line =
            |judgements: &[Judgement]| fact(judgements, &NOT_SLOWER).expect("a line").to_string();
        let one = line(&[judgement("a", 0.001, 7)]);
        assert!(one.ends_with(
            "7 made; a ratio scatters by 0.10 % from round to round (standard deviation of its logarithm), so that 5 \
             are needed; enough for 1 of 1"
        ), "{one}");
        let two = line(&[judgement("a", 0.001, 7), judgement("b", 2.0, 5)]);
        assert!(two.ends_with(
            "5 to 7 made; a ratio scatters by 0.10 to 200.00 % from round to round (standard deviation of its \
             logarithm), so that 5 to more than 1000 are needed, most by b; enough for 1 of 2"
        ), "{two}");
    }
}
