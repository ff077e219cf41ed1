//! Assignment of points to guests.

use std::collections::BTreeSet;
use std::ops::Range;

use luc_stats::StoppingVerdict;

use super::super::best_selection;
use super::super::plan::SweepPlan;
use super::super::repeat_schedule::{RepeatSchedule, shuffled};
use super::super::results_journal::RecordedResults;
use super::super::sweep_points::SweepPoint;

/// A boot takes as long as several points; a guest that is killed is lost as a whole.
const MAX_POINTS: usize = 40;
/// With a disk model, as in advice, a point takes longer than a boot.
const MAX_MODELLED_POINTS: usize = 4;

/// Repeats made before the figures are looked at again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RepeatStage {
    rounds: Range<usize>,
    members: Vec<usize>,
}

impl RepeatStage {
    /// Returns the only stage of a sweep that measures everything.
    pub(super) fn whole(plan: &SweepPlan, points: &[SweepPoint]) -> Self {
        Self {
            rounds: 0..points
                .iter()
                .filter_map(|point| plan.repeats_of(&point.workload))
                .max()
                .unwrap_or_default(),
            members: (0..points.len()).collect(),
        }
    }

    /// Returns the next one; `None` where all is decided. It follows from the plan and the figures of earlier stages
    /// alone.
    pub(super) fn next(
        plan: &SweepPlan,
        points: &[SweepPoint],
        results: &RecordedResults,
    ) -> Option<Self> {
        if !plan.stop.best {
            return Some(Self::whole(plan, points));
        }
        let RecordedResults { records, failures } = results;
        let verdicts = RepeatSchedule::new(plan, points, records, failures).verdicts();
        let wanted = |verdict: &StoppingVerdict| match verdict {
            StoppingVerdict::More(look) => Some(*look),
            _ => None,
        };
        let end = verdicts.iter().filter_map(wanted).min()?;
        let looks = best_selection::looks(&plan.goal());
        let begin = looks.into_iter().rfind(|&look| look < end).unwrap_or(0);
        // A point that failed in this stage stays a member: after an interruption the batches must be the same.
        let failed_here = |key: &str| {
            let rounds = failures.iter().filter(|failure| failure.key == key);
            rounds.map(|failure| failure.round).min().is_some_and(|round| round >= begin)
        };
        let is_member =
            |at: &usize| wanted(&verdicts[*at]) == Some(end) || failed_here(&points[*at].key());
        Some(Self { rounds: begin..end, members: (0..points.len()).filter(is_member).collect() })
    }
}

/// Points of one speed, one number of processors and one round, in the order in which a guest runs them.
#[derive(Debug, Clone)]
pub(super) struct GuestBatch {
    pub(super) mips: u64,
    /// Number of the guest's processors, if the plan has that axis.
    pub(super) processors: Option<u32>,
    pub(super) round: usize,
    /// Number of the batch among those of this speed and round, from 0.
    pub(super) number: usize,
    pub(super) points: Vec<SweepPoint>,
}

/// Deals a stage out to batches, round by round, so that an unfinished sweep has figures of all speeds.
pub(super) fn partition(
    plan: &SweepPlan,
    points: &[SweepPoint],
    stage: &RepeatStage,
) -> Vec<GuestBatch> {
    let kind = |point: &SweepPoint| Some((point.mips?, point.processors));
    let kinds: BTreeSet<(u64, Option<u32>)> = points.iter().filter_map(kind).collect();
    let most = if plan.disk.is_modelled() { MAX_MODELLED_POINTS } else { MAX_POINTS };
    let mut batches = Vec::new();
    for round in stage.rounds.clone() {
        let order = shuffled(plan.seed, round, points.len());
        let is_repeated = |point: &&SweepPoint| {
            let repeats = plan.repeats_of(&point.workload);
            repeats.is_none_or(|repeats| round < repeats)
        };
        for &(mips, processors) in &kinds {
            let of_kind: Vec<&SweepPoint> = order
                .iter()
                .filter(|number| stage.members.contains(number))
                .map(|&number| &points[number])
                .filter(|point| kind(point) == Some((mips, processors)))
                .filter(is_repeated)
                .collect();
            // Equal shares, so that no guest boots for a few points only.
            let guests = of_kind.len().div_ceil(most).max(1);
            let share = of_kind.len().div_ceil(guests).max(1);
            batches.extend(of_kind.chunks(share).enumerate().map(|(number, points)| GuestBatch {
                mips,
                processors,
                round,
                number,
                points: points.iter().map(|&point| point.clone()).collect(),
            }));
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::super::super::results_journal::PointFailure;
    use super::super::super::sweep_points::points;
    use super::super::super::test_plan::record;
    use super::*;

    #[test]
    fn every_point_is_in_one_lot_of_each_round() {
        let threads: Vec<String> = (1..=50).map(|count| count.to_string()).collect();
        let text = format!(
            "threads = [{}]
             [virtual]
             mips = [500, 1000]
             repeats = 2
             [[workload]]
             name = 'w'
             bench = 'metarates'
             [[target]]
             name = 't'
             fs = 'ext4'",
            threads.join(", ")
        );
        let plan = SweepPlan::parse(&text, Path::new("p.toml")).expect("fine");
        let points = points(&plan);
        let stage = RepeatStage::whole(&plan, &points);
        let batches = partition(&plan, &points, &stage);
        assert_eq!(batches.len(), 2 * 2 * 2);
        let mut seen = HashSet::new();
        for batch in &batches {
            assert_eq!(batch.points.len(), 25);
            for point in &batch.points {
                assert_eq!(point.mips, Some(batch.mips));
                assert!(seen.insert((point.key(), batch.round)));
            }
        }
        assert_eq!(seen.len(), points.len() * 2);
        let keys =
            |batch: &GuestBatch| batch.points.iter().map(SweepPoint::key).collect::<Vec<_>>();
        let again = partition(&plan, &points, &stage);
        assert!(batches.iter().zip(&again).all(|(a, b)| keys(a) == keys(b)));
        assert_ne!(keys(&batches[0]), keys(&batches[4]));
    }

    #[test]
    fn guests_are_of_one_number_of_processors_and_workloads_have_their_own_repeats() {
        let text = "
            [virtual]
            mips = [1000]
            processors = 4
            repeats = 1
            [[workload]]
            name = 'w'
            bench = 'metarates'
            processors = [1, 2]
            repeats = 2
            [[workload]]
            name = 'v'
            bench = 'varmail'
            [[target]]
            name = 't'
            fs = 'ext4'";
        let plan = SweepPlan::parse(text, Path::new("p.toml")).expect("fine");
        let points = points(&plan);
        let batches = partition(&plan, &points, &RepeatStage::whole(&plan, &points));
        let made: Vec<(usize, Option<u32>, Vec<String>)> = batches
            .iter()
            .map(|batch| {
                let keys = batch.points.iter().map(SweepPoint::key).collect();
                (batch.round, batch.processors, keys)
            })
            .collect();
        let of = |round, processors, key: &str| (round, Some(processors), vec![key.to_owned()]);
        assert_eq!(
            made,
            [
                of(0, 1, "w,1,t,off,1000,1"),
                of(0, 2, "w,1,t,off,1000,2"),
                of(0, 4, "v,1,t,off,1000,4"),
                of(1, 1, "w,1,t,off,1000,1"),
                of(1, 2, "w,1,t,off,1000,2"),
            ]
        );
    }

    const BEST: &str = "
        [virtual]
        mips = [1000]
        [stop]
        best = true
        min = 3
        max = 6
        [disk]
        model = 'ssd'
        [[workload]]
        name = 'w'
        bench = 'metarates'
        [[target]]
        name = 'ext4'
        fs = 'ext4'
        [[target]]
        name = 'xfs'
        fs = 'xfs'
        [[target]]
        name = 'old'
        fs = 'reiserfs'";

    #[test]
    fn who_is_worse_or_failed_is_in_no_later_round() {
        let plan = SweepPlan::parse(BEST, Path::new("p.toml")).expect("fine");
        let points = points(&plan);
        let mut results = RecordedResults::default();
        let stage = |results: &RecordedResults| RepeatStage::next(&plan, &points, results);
        let first = RepeatStage { rounds: 0..3, members: vec![0, 1, 2] };
        assert_eq!(stage(&results), Some(first.clone()));
        // Guests end in any order, and what failed is not asked for in a later stage only.
        results.failures.push(PointFailure {
            key: points[1].key(),
            round: 1,
            failed: "no".to_owned(),
        });
        for (at, round) in [(0, 2), (2, 0), (0, 0), (2, 1), (0, 1), (2, 2)] {
            assert_eq!(stage(&results), Some(first.clone()));
            let base = if at == 0 { 100.0 } else { 90.0 };
            let value = base * (1.0 + round as f64 / 10.0);
            results.records.push(record(&points[at].key(), round, value));
        }
        // Ratios of the same round are all 100/90: it is decided, and would not be of rounds as they came in.
        assert_eq!(stage(&results), None);
        let undecided = &mut results.records[1];
        undecided.value *= 1.2;
        let second = RepeatStage { rounds: 3..6, members: vec![0, 2] };
        assert_eq!(stage(&results), Some(second));
    }
}
