//! Plans that look only for the best target and policy: when a candidate is given up, and the final selection.

use std::collections::HashMap;

use luc_stats::{StoppingRule, StoppingVerdict};
use serde::Serialize;

use super::plan::{BatchingRule, SweepPolicy};
use super::results_journal::{PointFailure, RepeatRecord};
use super::sweep_points::SweepPoint;
use luc_stats::selection::{
    CandidateSelection, ComparisonVerdict, MeasuredCandidate, SelectionTerms, select,
};

/// Points that are compared with each other, and the result.
#[derive(Debug, Serialize)]
pub struct ComparedPoints {
    /// Values of the axes that they share: all but target and policy.
    pub group: String,
    pub unit: String,
    /// Their keys, in the order of the selection's candidates.
    pub keys: Vec<String>,
    /// Result of the comparison; `None` of fewer than 3 rounds.
    pub selection: Option<CandidateSelection>,
}

impl SweepPoint {
    /// Describes the point as a candidate without samples.
    pub(super) fn candidate(&self) -> MeasuredCandidate {
        let target = &self.target;
        let file_system = target.fs.clone().unwrap_or_else(|| "directory".to_owned());
        let name = target.name.strip_prefix(&file_system);
        let name = name.and_then(|rest| rest.strip_prefix('-')).unwrap_or(&target.name);
        let gate = match self.policy {
            SweepPolicy::Gate(BatchingRule::Auto) => Some("with the gate".to_owned()),
            SweepPolicy::Gate(batching) => Some(format!("with the gate ({})", batching.name())),
            SweepPolicy::Off | SweepPolicy::Kernel(..) => None,
        };
        MeasuredCandidate {
            is_default: gate.is_none() && target.mkfs.is_empty() && target.mount.is_empty(),
            options: gate.map_or(name.to_owned(), |gate| format!("{name} {gate}")),
            danger: target.danger().map(str::to_owned),
            file_system,
            rates: Vec::new(),
            per_joule: Vec::new(),
        }
    }
}

/// Returns the numbers of the points of each group, in their order.
pub(super) fn groups(points: &[SweepPoint]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (number, point) in points.iter().enumerate() {
        let name = point.group();
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(number),
            None => groups.push((name, vec![number])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

/// Returns the numbers of rounds after which worse candidates are given up.
pub(super) fn looks(goal: &StoppingRule) -> Vec<usize> {
    let doubled = std::iter::successors(Some(goal.min.max(1)), |look| Some(look * 2));
    let mut looks: Vec<usize> = doubled.take_while(|&look| look < goal.max).collect();
    looks.push(goal.max);
    looks
}

/// Returns the terms of a selection: one look at each number of rounds, and one more when time is up.
pub(super) fn terms(goal: &StoppingRule) -> SelectionTerms {
    SelectionTerms { looks: looks(goal).len() + 1, ..SelectionTerms::default() }
}

/// Decides which of a group's `candidates` go on; those marked in `failed` do not.
///
/// At each look, candidates that are significantly worse than the best are given up. The group ends when the best can
/// exceed no other by more than the goal.
pub(super) fn verdicts(
    goal: &StoppingRule,
    candidates: &[MeasuredCandidate],
    failed: &[bool],
) -> Vec<StoppingVerdict> {
    let mut verdicts: Vec<StoppingVerdict> = failed
        .iter()
        .map(|&failed| if failed { StoppingVerdict::Failed } else { StoppingVerdict::NotConverged })
        .collect();
    let mut alive: Vec<usize> = (0..candidates.len()).filter(|&at| !failed[at]).collect();
    for look in looks(goal) {
        if alive.iter().any(|&at| candidates[at].rates.len() < look) {
            alive.iter().for_each(|&at| verdicts[at] = StoppingVerdict::More(look));
            return verdicts;
        }
        let mut seen = candidates.to_vec();
        seen.iter_mut().for_each(|candidate| candidate.rates.truncate(look));
        // If all candidates lose data there is no best: all go on to the end.
        let Ok(CandidateSelection { rate, .. }) = select(&seen, terms(goal)) else {
            continue;
        };
        let mut is_open = false;
        alive.retain(|&at| match rate.against(at) {
            Some(found) if found.best_is == ComparisonVerdict::Better => {
                verdicts[at] = StoppingVerdict::Worse;
                false
            }
            Some(found) if found.best_is == ComparisonVerdict::Worse => {
                verdicts[at] = StoppingVerdict::Converged;
                false
            }
            found => {
                is_open |= found.is_some_and(|found| found.high > 1.0 + goal.relative_half_width);
                true
            }
        });
        if !is_open {
            alive.iter().for_each(|&at| verdicts[at] = StoppingVerdict::Converged);
            return verdicts;
        }
    }
    verdicts
}

/// Returns the records of one point by their rounds, from the first up to one that is not there: guests end in any
/// order.
pub(super) fn in_rounds(mut records: Vec<&RepeatRecord>) -> impl Iterator<Item = &RepeatRecord> {
    records.sort_by_key(|record| record.round);
    let in_order = records.into_iter().enumerate();
    in_order.take_while(|(at, record)| record.round == *at).map(|(_, record)| record)
}

/// Selects the best of every group from the records.
pub(super) fn select_all(
    goal: &StoppingRule,
    points: &[SweepPoint],
    records: &[RepeatRecord],
) -> Vec<ComparedPoints> {
    let mut made: HashMap<&str, Vec<&RepeatRecord>> = HashMap::new();
    for record in records {
        made.entry(&record.key).or_default().push(record);
    }
    let group = |members: Vec<usize>| {
        let of = |&number: &usize| {
            let point = &points[number];
            let records = made.get(&*point.key()).cloned().unwrap_or_default();
            let records: Vec<&RepeatRecord> = in_rounds(records).collect();
            let mut candidate = point.candidate();
            candidate.rates = records.iter().map(|record| record.value).collect();
            candidate.per_joule = records.iter().map(|record| record.per_gross_joule).collect();
            candidate
        };
        let candidates: Vec<MeasuredCandidate> = members.iter().map(of).collect();
        let first = &points[members[0]];
        ComparedPoints {
            group: first.group(),
            unit: first.unit().to_owned(),
            keys: members.iter().map(|&number| points[number].key()).collect(),
            selection: select(&candidates, terms(goal)).ok(),
        }
    };
    groups(points).into_iter().map(group).collect()
}

/// Marks the points that could not be measured.
pub(super) fn failed(points: &[SweepPoint], failures: &[PointFailure]) -> Vec<bool> {
    let is_failed = |point: &SweepPoint| failures.iter().any(|failure| failure.key == point.key());
    points.iter().map(is_failed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOAL: StoppingRule = StoppingRule { relative_half_width: 0.05, min: 3, max: 12 };

    fn candidate(rates: &[f64]) -> MeasuredCandidate {
        MeasuredCandidate {
            file_system: "ext4".to_owned(),
            options: "o".to_owned(),
            is_default: false,
            danger: None,
            rates: rates.to_vec(),
            per_joule: Vec::new(),
        }
    }

    #[test]
    fn looks_double() {
        assert_eq!(looks(&GOAL), [3, 6, 12]);
        assert_eq!(terms(&GOAL).looks, 4);
        let one = StoppingRule { max: 3, ..GOAL };
        assert_eq!(looks(&one), [3]);
    }

    #[test]
    fn who_is_worse_is_given_up_and_the_rest_goes_on() {
        let best = candidate(&[100.0, 100.1, 100.0]);
        let half = candidate(&[50.0, 50.1, 50.05]);
        let mut candidates = vec![best, half, candidate(&[99.9, 100.0])];
        let none = [false; 3];
        assert_eq!(verdicts(&GOAL, &candidates, &none), [StoppingVerdict::More(3); 3]);
        // Better in one round, worse in another.
        candidates[2].rates.push(100.1);
        let close = StoppingRule { relative_half_width: 1e-9, ..GOAL };
        let found = verdicts(&close, &candidates, &none);
        assert_eq!(
            found,
            [StoppingVerdict::More(6), StoppingVerdict::Worse, StoppingVerdict::More(6)]
        );
        // Within the goal of the best is as good.
        let found = verdicts(&GOAL, &candidates, &none);
        assert_eq!(
            found,
            [StoppingVerdict::Converged, StoppingVerdict::Worse, StoppingVerdict::Converged]
        );
        let found = verdicts(&GOAL, &candidates, &[false, false, true]);
        assert_eq!(
            found,
            [StoppingVerdict::Converged, StoppingVerdict::Worse, StoppingVerdict::Failed]
        );
    }

    #[test]
    fn who_cannot_be_told_apart_is_measured_to_the_end() {
        let wild = |at: usize| {
            let rate = |round: usize| {
                if (round + at).is_multiple_of(3) { 10.0 } else { 100.0 }
            };
            candidate(&(0..12).map(rate).collect::<Vec<f64>>())
        };
        let found = verdicts(&GOAL, &[wild(0), wild(1)], &[false; 2]);
        assert_eq!(found, [StoppingVerdict::NotConverged; 2]);
        let mut unsafe_only = wild(0);
        unsafe_only.danger = Some("no journal".to_owned());
        let found = verdicts(&GOAL, &[unsafe_only], &[false]);
        assert_eq!(found, [StoppingVerdict::NotConverged]);
    }
}
