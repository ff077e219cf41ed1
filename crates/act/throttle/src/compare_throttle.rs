//! Compares the same commands with the throttle and without, in random order, and each alone: the gain, and its price.

use luc_stats::{
    RatioEnds, RunSide, SharedRunFigures, TaskTimes, interleave, median, ratio_ends, together,
    worst_against,
};
use serde::Serialize;

use crate::ThrottleError;
use crate::run_commands::{TaskOutcome, ThrottledRunOutcome};

/// Settings of a comparison with and without the throttle.
#[derive(Clone, Copy, Debug)]
pub struct ThrottleCompareOptions {
    /// Number of rounds. Each has a run with the throttle, one without, and each task alone.
    pub rounds: u32,
    /// Seed of the random order.
    pub seed: u64,
}

/// A run of a round: all with the throttle, all without, or one command alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedRun {
    /// All tasks together, throttled.
    With,
    /// All tasks together, not throttled.
    Without,
    /// One task alone, by its number.
    Alone(usize),
}

/// Results of a round: each command alone, and all with and without the throttle.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonRound {
    pub alone_s: Vec<f64>,
    /// The run with the throttle.
    pub with: ThrottledRunOutcome,
    pub without: ThrottledRunOutcome,
    figures_with: SharedRunFigures,
    figures_without: SharedRunFigures,
    worst_against: f64,
}

/// Figures with and without the throttle, over all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct ThrottleComparison {
    /// Tasks per time: their number over the makespan.
    pub throughput: ComparedMedian,
    /// Mean finish of the tasks.
    pub mean_finish_s: ComparedMedian,
    /// Sum over the tasks of time alone over time together.
    pub weighted_speedup: ComparedMedian,
    /// Time together over time alone, for the task that suffers most.
    pub worst_slowdown: ComparedMedian,
    /// Largest ratio over all tasks of time with the throttle to time without: above 1, a task loses.
    pub worst_against_without: f64,
    pub rounds: Vec<ComparisonRound>,
}

/// Medians of one figure with and without the throttle, and their ratio.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ComparedMedian {
    pub with: f64,
    pub without: f64,
    pub ratio: f64,
    /// The ratio's 95 % interval; `None` of fewer than 5 rounds.
    pub interval: Option<(f64, f64)>,
    /// The ratio's range, of 2 to 4 rounds.
    pub range: Option<(f64, f64)>,
}

/// Number of runs that a comparison of `tasks` makes.
#[must_use]
pub fn count_runs(options: ThrottleCompareOptions, tasks: usize) -> usize {
    options.rounds as usize * (2 + tasks)
}

/// Makes all runs by calling `run`.
///
/// # Errors
///
/// As `run`; [`ThrottleError::Interrupted`] after Ctrl-C; [`ThrottleError::Failed`] of a command that failed.
pub fn compare(
    options: ThrottleCompareOptions,
    tasks: usize,
    mut run: impl FnMut(ComparedRun) -> Result<ThrottledRunOutcome, ThrottleError>,
) -> Result<ThrottleComparison, ThrottleError> {
    let mut whole = |trial| {
        let outcome = run(trial)?;
        if outcome.interrupted {
            return Err(ThrottleError::Interrupted);
        }
        match outcome.tasks.iter().find(|task| task.status != 0) {
            Some(task) => {
                Err(ThrottleError::Failed { command: task.command.clone(), status: task.status })
            }
            None => Ok(outcome),
        }
    };
    let sides = interleave(options.rounds as usize, options.seed);
    let mut rounds = Vec::new();
    for pair in sides.chunks_exact(2) {
        let mut alone_s = Vec::new();
        for task in 0..tasks {
            alone_s.push(whole(ComparedRun::Alone(task))?.makespan_s);
        }
        let (with, without) = if pair[0] == RunSide::With {
            let with = whole(ComparedRun::With)?;
            (with, whole(ComparedRun::Without)?)
        } else {
            let without = whole(ComparedRun::Without)?;
            (whole(ComparedRun::With)?, without)
        };
        rounds.push(ComparisonRound::of(alone_s, with, without)?);
    }
    ThrottleComparison::of(rounds, options.seed)
}

impl ComparisonRound {
    fn of(
        alone_s: Vec<f64>,
        with: ThrottledRunOutcome,
        without: ThrottledRunOutcome,
    ) -> Result<Self, ThrottleError> {
        let (times_with, times_without) = (times(&alone_s, &with), times(&alone_s, &without));
        let failed = || ThrottleError::Figures;
        Ok(Self {
            figures_with: together(&times_with).map_err(|_| failed())?,
            figures_without: together(&times_without).map_err(|_| failed())?,
            worst_against: worst_against(&times_with, &times_without).map_err(|_| failed())?,
            alone_s,
            with,
            without,
        })
    }
}

fn times(alone_s: &[f64], outcome: &ThrottledRunOutcome) -> Vec<TaskTimes> {
    let times = |(&alone, task): (&f64, &TaskOutcome)| TaskTimes {
        alone,
        start: task.start_s,
        finish: task.finish_s,
    };
    alone_s.iter().zip(&outcome.tasks).map(times).collect()
}

impl ThrottleComparison {
    fn of(rounds: Vec<ComparisonRound>, seed: u64) -> Result<Self, ThrottleError> {
        let row = |figure: fn(&SharedRunFigures) -> f64| {
            let with: Vec<f64> = rounds.iter().map(|round| figure(&round.figures_with)).collect();
            let without: Vec<f64> =
                rounds.iter().map(|round| figure(&round.figures_without)).collect();
            ComparedMedian::of(&with, &without, seed).ok_or(ThrottleError::Figures)
        };
        let worst: Vec<f64> = rounds.iter().map(|round| round.worst_against).collect();
        Ok(Self {
            throughput: row(|all| all.throughput)?,
            mean_finish_s: row(|all| all.mean_finish)?,
            weighted_speedup: row(|all| all.speedup.parts().0)?,
            worst_slowdown: row(|all| all.speedup.parts().1)?,
            worst_against_without: median(&worst).ok_or(ThrottleError::Figures)?,
            rounds,
        })
    }
}

fn between(ends: RatioEnds) -> (f64, f64) {
    (ends.low, ends.high)
}

impl ComparedMedian {
    fn of(with: &[f64], without: &[f64], seed: u64) -> Option<Self> {
        let ends = ratio_ends(with, without, seed).ok();
        let (with, without) = (median(with)?, median(without)?);
        Some(Self {
            with,
            without,
            ratio: with / without,
            interval: ends.filter(|ends| ends.range_of.is_none()).map(between),
            range: ends.filter(|ends| ends.range_of.is_some()).map(between),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outcome of tasks that all start at 0 and end at `finishes`.
    fn outcome(finishes: &[f64]) -> ThrottledRunOutcome {
        let task = |&finish: &f64| TaskOutcome {
            finish_s: finish,
            seconds: finish,
            ..TaskOutcome::default()
        };
        ThrottledRunOutcome {
            makespan_s: finishes.iter().copied().fold(0.0, f64::max),
            tasks: finishes.iter().map(task).collect(),
            ..ThrottledRunOutcome::default()
        }
    }

    fn run(trial: ComparedRun) -> Result<ThrottledRunOutcome, ThrottleError> {
        Ok(outcome(match trial {
            ComparedRun::Alone(_) => &[1.0],
            ComparedRun::With => &[1.0, 2.0],
            ComparedRun::Without => &[8.0, 8.0],
        }))
    }

    #[test]
    fn one_after_the_other_against_both_at_once() {
        let options = ThrottleCompareOptions { rounds: 3, seed: 1 };
        let mut runs = 0;
        let counted = |trial| {
            runs += 1;
            run(trial)
        };
        let all = compare(options, 2, counted).expect("figures");
        assert_eq!(runs, count_runs(options, 2));
        assert_eq!(all.throughput.ratio, 4.0);
        assert_eq!((all.weighted_speedup.with, all.weighted_speedup.without), (1.5, 0.25));
        assert_eq!((all.worst_slowdown.with, all.worst_slowdown.without), (2.0, 8.0));
        assert_eq!(all.worst_against_without, 0.25);
        assert_eq!((all.throughput.interval, all.throughput.range), (None, Some((4.0, 4.0))));
    }

    #[test]
    fn a_command_that_fails_ends_it() {
        let options = ThrottleCompareOptions { rounds: 1, seed: 1 };
        let failing = |_| {
            let mut outcome = outcome(&[1.0]);
            outcome.tasks[0].status = 3;
            Ok(outcome)
        };
        let said = compare(options, 1, failing).expect_err("failed").to_string();
        assert!(said.contains("status 3"), "{said}");
    }
}
