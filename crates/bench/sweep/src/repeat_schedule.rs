//! Order of repeats: every round has each point once, in a random order of its own.

use std::collections::HashMap;

use luc_stats::seeded_random;
use luc_stats::{StoppingRule, StoppingVerdict};

use super::best_selection;
use super::plan::SweepPlan;
use super::results_journal::{PointFailure, RepeatRecord};
use super::sweep_points::SweepPoint;
use luc_stats::selection::MeasuredCandidate;

/// Repeats made and wanted. It follows from the plan and the figures alone, so that a killed sweep goes on as if
/// uninterrupted.
#[derive(Debug)]
pub(super) struct RepeatSchedule {
    /// The goal of each point.
    goals: Vec<StoppingRule>,
    seed: u64,
    /// The figures of each point, by round.
    values: Vec<Vec<f64>>,
    /// Candidates, if only the best is wanted.
    best: Option<Best>,
}

/// Points that are compared with each other.
#[derive(Debug)]
struct Best {
    goal: StoppingRule,
    groups: Vec<Vec<usize>>,
    /// Candidates without samples, by the number of the point.
    names: Vec<MeasuredCandidate>,
    failed: Vec<bool>,
}

impl RepeatSchedule {
    pub(super) fn new(
        plan: &SweepPlan,
        points: &[SweepPoint],
        records: &[RepeatRecord],
        failures: &[PointFailure],
    ) -> Self {
        let numbers: HashMap<String, usize> =
            points.iter().enumerate().map(|(at, point)| (point.key(), at)).collect();
        let mut made = vec![Vec::new(); points.len()];
        for record in records {
            if let Some(&number) = numbers.get(&record.key) {
                made[number].push(record);
            }
        }
        let values =
            |records| best_selection::in_rounds(records).map(|record| record.value).collect();
        Self {
            goals: points.iter().map(|point| plan.goal_of(&point.workload)).collect(),
            seed: plan.seed,
            values: made.into_iter().map(values).collect(),
            best: plan.stop.best.then(|| Best {
                goal: plan.goal(),
                groups: best_selection::groups(points),
                names: points.iter().map(SweepPoint::candidate).collect(),
                failed: best_selection::failed(points, failures),
            }),
        }
    }

    /// Decides which points go on.
    pub(super) fn verdicts(&self) -> Vec<StoppingVerdict> {
        let Some(best) = &self.best else {
            let each = self.goals.iter().zip(&self.values);
            return each.map(|(goal, values)| goal.verdict(values)).collect();
        };
        let mut verdicts = vec![StoppingVerdict::Converged; self.values.len()];
        for members in &best.groups {
            let candidate = |&number: &usize| MeasuredCandidate {
                rates: self.values[number].clone(),
                ..best.names[number].clone()
            };
            let candidates: Vec<MeasuredCandidate> = members.iter().map(candidate).collect();
            let failed: Vec<bool> = members.iter().map(|&number| best.failed[number]).collect();
            let found = best_selection::verdicts(&best.goal, &candidates, &failed);
            for (&number, verdict) in members.iter().zip(found) {
                verdicts[number] = verdict;
            }
        }
        verdicts
    }

    /// Returns the next point and its round, from 0; `None` when every point has enough.
    pub(super) fn next(&self) -> Option<(usize, usize)> {
        let verdicts = self.verdicts();
        let wanting = |number: &usize| matches!(verdicts[*number], StoppingVerdict::More(_));
        let open: Vec<usize> = (0..self.values.len()).filter(wanting).collect();
        let round = open.iter().map(|&number| self.values[number].len()).min()?;
        shuffled(self.seed, round, self.values.len())
            .into_iter()
            .find(|number| open.contains(number) && self.values[*number].len() == round)
            .map(|number| (number, round))
    }

    /// Adds the figure of a repeat.
    pub(super) fn add(&mut self, number: usize, value: f64) {
        self.values[number].push(value);
    }

    /// Marks a point that cannot be measured.
    pub(super) fn fail(&mut self, number: usize) {
        if let Some(best) = &mut self.best {
            best.failed[number] = true;
        }
    }

    pub(super) fn made(&self) -> usize {
        self.values.iter().map(Vec::len).sum()
    }

    /// Counts repeats made and still to be made before the next look at each point.
    pub(super) fn wanted(&self) -> usize {
        let of_point = |(values, verdict): (&Vec<f64>, StoppingVerdict)| match verdict {
            StoppingVerdict::More(count) => count,
            _ => values.len(),
        };
        self.values.iter().zip(self.verdicts()).map(of_point).sum()
    }
}

/// Shuffles the points for a round.
pub(super) fn shuffled(seed: u64, round: usize, count: usize) -> Vec<usize> {
    seeded_random::shuffled(count, &mut seeded_random::stream(seed, round as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule() -> RepeatSchedule {
        let goal = StoppingRule { relative_half_width: 0.1, min: 6, max: 12 };
        RepeatSchedule { goals: vec![goal; 4], seed: 3, values: vec![Vec::new(); 4], best: None }
    }

    /// Point 0 has equal figures, the others never agree with themselves.
    fn value(number: usize, round: usize) -> f64 {
        if number == 0 { 5.0 } else { 1.0 + (round % 2) as f64 * 9.0 }
    }

    fn whole(mut schedule: RepeatSchedule) -> Vec<(usize, usize)> {
        let mut made = Vec::new();
        while let Some((number, round)) = schedule.next() {
            schedule.add(number, value(number, round));
            made.push((number, round));
        }
        made
    }

    #[test]
    fn rounds_are_whole_in_random_order_until_enough() {
        let made = whole(schedule());
        assert_eq!(made.len(), 6 + 3 * 12);
        let orders: Vec<Vec<usize>> =
            made[..24].chunks(4).map(|round| round.iter().map(|at| at.0).collect()).collect();
        assert!(orders.iter().any(|order| *order != orders[0]));
        for order in orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
        }
    }

    #[test]
    fn stopped_anywhere_it_goes_on_the_same() {
        let all = whole(schedule());
        for stopped in 0..all.len() {
            let mut half = schedule();
            for &(number, round) in &all[..stopped] {
                half.add(number, value(number, round));
            }
            assert_eq!(whole(half), all[stopped..]);
        }
    }
}
