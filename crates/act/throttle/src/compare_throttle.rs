//! Compares the same commands with the throttle and without, in random order, and each alone: the gain, and its price.

use luc_stats::{
    Interval, Side, TaskTimes, Together, interleave, median, ratio_interval, together,
    worst_against,
};
use serde::Serialize;

use crate::ThrottleError;
use crate::run::{RunOutcome, TaskOutcome};

#[derive(Clone, Copy, Debug)]
pub struct CompareOptions {
    /// Number of rounds. Each has a run with the throttle, one without, and each task alone.
    pub rounds: u32,
    /// Seed of the random order.
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// All tasks together, throttled.
    With,
    /// All tasks together, not throttled.
    Without,
    /// One task alone, by its number.
    Alone(usize),
}

#[derive(Clone, Debug, Serialize)]
pub struct Round {
    pub alone_s: Vec<f64>,
    /// The run with the throttle.
    pub with: RunOutcome,
    pub without: RunOutcome,
    figures_with: Together,
    figures_without: Together,
    worst_against: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Tasks per time: their number over the makespan.
    pub throughput: Row,
    /// Mean finish of the tasks.
    pub mean_finish_s: Row,
    /// Sum over the tasks of time alone over time together.
    pub weighted_speedup: Row,
    /// Time together over time alone, for the task that suffers most.
    pub worst_slowdown: Row,
    /// Largest ratio over all tasks of time with the throttle to time without: above 1, a task loses.
    pub worst_against_without: f64,
    pub rounds: Vec<Round>,
}

/// Medians of one figure with and without the throttle, and their ratio. The ratio has a 95 % interval if there are
/// enough rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Row {
    pub with: f64,
    pub without: f64,
    pub ratio: f64,
    pub interval: Option<(f64, f64)>,
}

/// Number of runs that a comparison of `tasks` makes.
#[must_use]
pub fn count_runs(options: CompareOptions, tasks: usize) -> usize {
    options.rounds as usize * (2 + tasks)
}

/// Makes all runs by calling `run`.
///
/// # Errors
///
/// As `run`; [`ThrottleError::Interrupted`] after Ctrl-C; [`ThrottleError::Failed`] of a command that failed.
pub fn compare(
    options: CompareOptions,
    tasks: usize,
    mut run: impl FnMut(Trial) -> Result<RunOutcome, ThrottleError>,
) -> Result<Comparison, ThrottleError> {
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
            alone_s.push(whole(Trial::Alone(task))?.makespan_s);
        }
        let (with, without) = if pair[0] == Side::With {
            let with = whole(Trial::With)?;
            (with, whole(Trial::Without)?)
        } else {
            let without = whole(Trial::Without)?;
            (whole(Trial::With)?, without)
        };
        rounds.push(Round::of(alone_s, with, without)?);
    }
    Comparison::of(rounds, options.seed)
}

impl Round {
    fn of(alone_s: Vec<f64>, with: RunOutcome, without: RunOutcome) -> Result<Self, ThrottleError> {
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

fn times(alone_s: &[f64], outcome: &RunOutcome) -> Vec<TaskTimes> {
    let times = |(&alone, task): (&f64, &TaskOutcome)| TaskTimes {
        alone,
        start: task.start_s,
        finish: task.finish_s,
    };
    alone_s.iter().zip(&outcome.tasks).map(times).collect()
}

impl Comparison {
    fn of(rounds: Vec<Round>, seed: u64) -> Result<Self, ThrottleError> {
        let row = |figure: fn(&Together) -> f64| {
            let with: Vec<f64> = rounds.iter().map(|round| figure(&round.figures_with)).collect();
            let without: Vec<f64> =
                rounds.iter().map(|round| figure(&round.figures_without)).collect();
            Row::of(&with, &without, seed).ok_or(ThrottleError::Figures)
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

impl Row {
    fn of(with: &[f64], without: &[f64], seed: u64) -> Option<Self> {
        let interval = ratio_interval(with, without, seed).ok();
        let (with, without) = (median(with)?, median(without)?);
        Some(Self {
            with,
            without,
            ratio: with / without,
            interval: interval.map(|Interval { low, high, .. }| (low, high)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outcome of tasks that all start at 0 and end at `finishes`.
    fn outcome(finishes: &[f64]) -> RunOutcome {
        let task = |&finish: &f64| TaskOutcome {
            finish_s: finish,
            seconds: finish,
            ..TaskOutcome::default()
        };
        RunOutcome {
            makespan_s: finishes.iter().copied().fold(0.0, f64::max),
            tasks: finishes.iter().map(task).collect(),
            ..RunOutcome::default()
        }
    }

    fn run(trial: Trial) -> Result<RunOutcome, ThrottleError> {
        Ok(outcome(match trial {
            Trial::Alone(_) => &[1.0],
            Trial::With => &[1.0, 2.0],
            Trial::Without => &[8.0, 8.0],
        }))
    }

    #[test]
    fn one_after_the_other_against_both_at_once() {
        let options = CompareOptions { rounds: 3, seed: 1 };
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
        assert_eq!(all.throughput.interval, Some((4.0, 4.0)));
    }

    #[test]
    fn a_command_that_fails_ends_it() {
        let options = CompareOptions { rounds: 1, seed: 1 };
        let failing = |_| {
            let mut outcome = outcome(&[1.0]);
            outcome.tasks[0].status = 3;
            Ok(outcome)
        };
        let said = compare(options, 1, failing).expect_err("failed").to_string();
        assert!(said.contains("status 3"), "{said}");
    }
}
