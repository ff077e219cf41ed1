//! The best of each side, chosen on some rounds and judged on the others.
//!
//! Chosen and judged on the same rounds, the best of many settings looks better than it is.

use luc_stats::{median, seeded_random};

use super::series::Repeat;

/// Settings chosen on one half of the rounds, and their ratio in each round of the other half.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JudgedChoice {
    /// Index of our setting.
    pub(super) ours: usize,
    /// Index of the rivals' setting.
    pub(super) theirs: usize,
    pub(super) ratios: Vec<Repeat>,
}

/// Splits the rounds by `seed`. The first half chooses each side's setting, by the greatest median. The second half
/// judges: it gives the ratios of the two. An odd round is judged. `None` if there is nothing to choose or to judge.
pub(super) fn chosen_then_judged(
    ours: &[&[Repeat]],
    theirs: &[&[Repeat]],
    seed: u64,
) -> Option<JudgedChoice> {
    // 1. Split the rounds.
    let mut rounds: Vec<usize> =
        ours.iter().chain(theirs).flat_map(|setting| setting.iter().map(|(at, _)| *at)).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let order = seeded_random::shuffled(rounds.len(), &mut seeded_random::stream(seed, 0));
    let first: Vec<usize> = order[..rounds.len() / 2].iter().map(|&at| rounds[at]).collect();

    // 2. Choose. Of equal settings the first one is taken.
    let chosen = |settings: &[&[Repeat]]| {
        let middle = |setting: &[Repeat]| {
            let there = setting.iter().filter(|(round, _)| first.contains(round));
            median(&there.map(|(_, value)| *value).collect::<Vec<f64>>())
        };
        let known = settings.iter().enumerate();
        let known = known.filter_map(|(at, setting)| Some((at, middle(setting)?)));
        let best = known.reduce(|best, other| if other.1 > best.1 { other } else { best });
        best.map(|(at, _)| at)
    };
    let (ours_at, theirs_at) = (chosen(ours)?, chosen(theirs)?);

    // 3. Judge.
    let ratio = |(round, value): &Repeat| {
        let other = theirs[theirs_at].iter().find(|(at, _)| at == round)?;
        (!first.contains(round)).then_some((*round, value / other.1))
    };
    let ratios: Vec<Repeat> = ours[ours_at].iter().filter_map(ratio).collect();
    (!ratios.is_empty()).then_some(JudgedChoice { ours: ours_at, theirs: theirs_at, ratios })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(values: &[f64]) -> Vec<Repeat> {
        values.iter().copied().enumerate().collect()
    }

    #[test]
    fn a_setting_is_judged_on_rounds_that_did_not_choose_it() {
        let seed = 1;
        let order = seeded_random::shuffled(4, &mut seeded_random::stream(seed, 0));
        let (chose, judged) = order.split_at(2);
        // Lucky is the best in the rounds that choose, and the worst afterwards.
        let of = |at_choice: f64, afterwards: f64| {
            let value = |at: usize| if chose.contains(&at) { at_choice } else { afterwards };
            rounds(&[0, 1, 2, 3].map(value))
        };
        let (lucky, steady, rival) = (of(30.0, 5.0), of(20.0, 20.0), of(10.0, 10.0));
        let found = chosen_then_judged(&[&steady, &lucky], &[&rival], seed).expect("a choice");
        assert_eq!((found.ours, found.theirs), (1, 0));
        let mut judged = judged.to_vec();
        judged.sort_unstable();
        let expected: Vec<Repeat> = judged.iter().map(|&at| (at, 0.5)).collect();
        assert_eq!(found.ratios, expected);
    }

    #[test]
    fn an_odd_round_is_judged_and_one_alone_gives_nothing() {
        let (a, b) = (rounds(&[1.0, 1.0, 1.0]), rounds(&[2.0, 2.0, 2.0]));
        let found = chosen_then_judged(&[&a], &[&b], 7).expect("three rounds");
        assert_eq!(found.ratios.len(), 2);
        assert_eq!(chosen_then_judged(&[&a[..1]], &[&b[..1]], 7), None);
        assert_eq!(chosen_then_judged(&[], &[&b], 7), None);
    }

    #[test]
    fn choosing_among_equals_gains_nothing() {
        // Ours are twenty settings of the same noise. Chosen and judged on the same rounds the best looks faster.
        let (mut same, mut other) = (0.0, 0.0);
        let trials = 400;
        for trial in 0..trials {
            let mut random = seeded_random::stream(trial, 1);
            let mut made = || {
                let values: Vec<f64> =
                    (0..8).map(|_| (0.1 * seeded_random::normal(&mut random)).exp()).collect();
                rounds(&values)
            };
            let ours: Vec<Vec<Repeat>> = (0..20).map(|_| made()).collect();
            let rival = made();
            let ours: Vec<&[Repeat]> = ours.iter().map(Vec::as_slice).collect();
            let of = |repeats: &[Repeat]| {
                median(&repeats.iter().map(|(_, value)| *value).collect::<Vec<f64>>())
                    .unwrap_or(0.0)
            };
            let best = ours.iter().map(|setting| of(setting)).fold(0.0, f64::max);
            same += best / of(&rival) / trials as f64;
            let judged = chosen_then_judged(&ours, &[&rival], trial).expect("eight rounds");
            other += of(&judged.ratios) / trials as f64;
        }
        assert!(same > 1.06, "{same}");
        assert!((0.99..1.02).contains(&other), "{other}");
    }
}
