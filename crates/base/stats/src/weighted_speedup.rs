//! Performance of tasks that run together, against each alone: throughput, weighted speedup, slowdowns, fairness.
//!
//! Weighted speedup (Snavely, Tullsen, *Symbiotic jobscheduling*, ASPLOS 2000) is the sum of `alone / together`. It
//! rewards unfairness. Take N equal tasks that each use all of a disk. Any fair sharing that loses nothing gives 1.
//! Running them one after the other gives H(N), the sum of 1/k for k from 1 to N. So [`WeightedSpeedup`] always
//! includes the worst task's slowdown.

use std::fmt;

use serde::Serialize;

use crate::StatsError;

/// Times of one task alone and beside others, all in one unit of one clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaskTimes {
    pub alone: f64,
    /// Start beside the others.
    pub start: f64,
    /// End beside the others.
    pub finish: f64,
}

impl TaskTimes {
    /// Returns the duration beside others over that alone.
    fn slowdown(&self) -> f64 {
        (self.finish - self.start) / self.alone
    }

    fn check(&self) -> Result<(), StatsError> {
        let is_time = |time: f64| time.is_finite() && time > 0.0;
        if is_time(self.alone) && self.start.is_finite() && is_time(self.finish - self.start) {
            return Ok(());
        }
        Err(StatsError::NotPositive)
    }
}

/// Weighted speedup with the worst task's slowdown: there is no way to have one without the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WeightedSpeedup {
    weighted_speedup: f64,
    worst_slowdown: f64,
}

impl WeightedSpeedup {
    /// Returns weighted speedup, and the worst task's slowdown.
    #[must_use]
    pub fn parts(&self) -> (f64, f64) {
        (self.weighted_speedup, self.worst_slowdown)
    }
}

impl fmt::Display for WeightedSpeedup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (speedup, worst) = self.parts();
        write!(f, "{speedup:.2} (worst task {worst:.2} times its time alone)")
    }
}

/// Results of tasks that ran together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharedRunFigures {
    /// Weighted speedup, and the worst task's slowdown.
    #[serde(flatten)]
    pub speedup: WeightedSpeedup,
    /// Time from the first start to the last end.
    pub makespan: f64,
    /// Tasks per unit of time: their number over the makespan.
    pub throughput: f64,
    /// Mean over the tasks of their ends, from the first start.
    pub mean_finish: f64,
    /// Mean over the tasks of time together over time alone.
    pub mean_slowdown: f64,
    /// Jain's fairness index of `alone / together`: 1 where all are slowed down alike, 1/N where one has all (Jain,
    /// Chiu, Hawe, DEC TR-301, 1984).
    pub fairness: f64,
    /// Time together over time alone, in the tasks' order.
    pub slowdowns: Vec<f64>,
}

/// Summarizes `tasks`.
///
/// # Errors
/// [`StatsError::TooFew`] of no task, [`StatsError::NotPositive`] of a time that is no positive number.
pub fn together(tasks: &[TaskTimes]) -> Result<SharedRunFigures, StatsError> {
    if tasks.is_empty() {
        return Err(StatsError::TooFew { runs: 0 });
    }
    tasks.iter().try_for_each(TaskTimes::check)?;
    let count = tasks.len() as f64;
    let first = tasks.iter().map(|task| task.start).fold(f64::INFINITY, f64::min);
    let makespan = tasks.iter().map(|task| task.finish - first).fold(0.0, f64::max);
    let slowdowns: Vec<f64> = tasks.iter().map(TaskTimes::slowdown).collect();
    let speedup: f64 = slowdowns.iter().map(|slowdown| 1.0 / slowdown).sum();
    let squares: f64 = slowdowns.iter().map(|slowdown| slowdown.powi(-2)).sum();
    Ok(SharedRunFigures {
        speedup: WeightedSpeedup {
            weighted_speedup: speedup,
            worst_slowdown: slowdowns.iter().copied().fold(0.0, f64::max),
        },
        makespan,
        throughput: count / makespan,
        mean_finish: tasks.iter().map(|task| task.finish - first).sum::<f64>() / count,
        mean_slowdown: slowdowns.iter().sum::<f64>() / count,
        fairness: speedup * speedup / (count * squares),
        slowdowns,
    })
}

/// Returns the largest over all tasks of its time under one policy over its time under another: 1 where nobody is worse
/// off. The tasks have the same order in both.
///
/// # Errors
/// [`StatsError::TooFew`] where there is no task or their numbers differ, [`StatsError::NotPositive`] of a time that is
/// no positive number.
pub fn worst_against(tasks: &[TaskTimes], rival: &[TaskTimes]) -> Result<f64, StatsError> {
    if tasks.is_empty() || tasks.len() != rival.len() {
        let runs = tasks.len().min(rival.len());
        return Err(StatsError::TooFew { runs });
    }
    tasks.iter().chain(rival).try_for_each(TaskTimes::check)?;
    let ratios = tasks
        .iter()
        .zip(rival)
        .map(|(task, rival)| (task.finish - task.start) / (rival.finish - rival.start));
    Ok(ratios.fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all_at_once(finishes: &[f64]) -> Vec<TaskTimes> {
        let task = |&finish: &f64| TaskTimes { alone: 1.0, start: 0.0, finish };
        finishes.iter().map(task).collect()
    }

    fn one_after_the_other(count: u32) -> SharedRunFigures {
        let finishes: Vec<f64> = (1..=count).map(f64::from).collect();
        together(&all_at_once(&finishes)).expect("times")
    }

    fn fair(count: u32) -> SharedRunFigures {
        let finishes = vec![f64::from(count); count as usize];
        together(&all_at_once(&finishes)).expect("times")
    }

    #[test]
    fn equal_tasks_under_lossless_fair_sharing_have_a_weighted_speedup_of_1() {
        for count in [1, 2, 4, 8] {
            let all = fair(count);
            assert_eq!(all.speedup.parts(), (1.0, f64::from(count)));
            assert_eq!(all.fairness, 1.0);
            assert_eq!(all.mean_slowdown, f64::from(count));
            assert_eq!(all.throughput, 1.0);
        }
    }

    #[test]
    fn one_after_the_other_has_the_harmonic_number_with_the_same_worst_task() {
        for (count, harmonic) in [(2, 1.5), (4, 2.0833), (8, 2.7179)] {
            let all = one_after_the_other(count);
            let (speedup, worst) = all.speedup.parts();
            assert!((speedup - harmonic).abs() < 1e-4, "{count}: {speedup}");
            assert_eq!(worst, f64::from(count));
            assert_eq!(all.throughput, 1.0);
            assert_eq!(all.mean_finish, f64::from(count + 1) / 2.0);
            assert!(all.fairness < 1.0);
        }
    }

    #[test]
    fn in_a_batch_a_task_s_time_is_from_its_own_start() {
        // Two at a time of three that take 1 alone and 2 beside another.
        let tasks = [(0.0, 2.0), (0.0, 2.0), (2.0, 3.0)];
        let tasks = tasks.map(|(start, finish)| TaskTimes {
            alone: 1.0,
            start: start + 7.0,
            finish: finish + 7.0,
        });
        let all = together(&tasks).expect("times");
        assert_eq!(all.slowdowns, [2.0, 2.0, 1.0]);
        assert_eq!(all.speedup.parts(), (2.0, 2.0));
        assert_eq!((all.makespan, all.throughput), (3.0, 1.0));
    }

    #[test]
    fn weighted_speedup_is_shown_and_kept_with_the_worst_task() {
        let all = one_after_the_other(2);
        let text = all.speedup.to_string();
        assert_eq!(text, "1.50 (worst task 2.00 times its time alone)");
    }

    #[test]
    fn who_is_worse_off_than_under_another_policy_is_found() {
        let turns = all_at_once(&[1.0, 2.0, 3.0, 4.0]);
        let shared = all_at_once(&[4.0, 4.0, 4.0, 4.0]);
        assert_eq!(worst_against(&turns, &shared), Ok(1.0));
        assert_eq!(worst_against(&shared, &turns), Ok(4.0));
        let fewer = worst_against(&turns, &shared[..3]);
        assert_eq!(fewer, Err(StatsError::TooFew { runs: 3 }));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        assert_eq!(together(&[]), Err(StatsError::TooFew { runs: 0 }));
        for finish in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let refused = together(&all_at_once(&[1.0, finish]));
            assert_eq!(refused, Err(StatsError::NotPositive), "{finish}");
        }
        let mut task = all_at_once(&[1.0]);
        task[0].alone = 0.0;
        assert_eq!(together(&task), Err(StatsError::NotPositive));
    }

    proptest! {
        #[test]
        fn fairness_is_between_an_nth_and_1_and_worst_bounds_the_rest(
            finishes in prop::collection::vec(0.01..1000.0_f64, 1..20),
        ) {
            let all = together(&all_at_once(&finishes)).expect("times");
            let count = finishes.len() as f64;
            prop_assert!(all.fairness <= 1.0 + 1e-9 && all.fairness >= 1.0 / count - 1e-9);
            let (speedup, worst) = all.speedup.parts();
            prop_assert!(all.mean_slowdown <= worst + 1e-9);
            prop_assert!(speedup >= count / worst - 1e-9);
        }
    }
}
