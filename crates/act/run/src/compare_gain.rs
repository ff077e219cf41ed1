//! Runs a command with and without the gate or the module, in random order, and compares times and calls.

use std::fmt;

use luc_launch::{Ending, Outcome};
use luc_stats::{Interval, Side, interleave, median, ratio_interval};
use luc_units::figures::Time;
use serde::Serialize;

use crate::{Change, Recorded, RunError, RunOutcome, TimeSplit, explain};

/// Minimum number of pairs with a useful interval.
const MIN_PAIRS: usize = 3;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Runs of each side.
    pub pairs: u32,
    /// Seed of the random order.
    pub seed: u64,
    /// Whether one more run of each side is recorded, to say what the calls' time went into.
    pub explains: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// Number of runs that will be made.
    Begin(usize),
    Step,
    /// Reason why the calls' time is not known.
    Unexplained(&'a str),
}

/// All runs, and their figures together.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The runs with the gate or the module.
    pub with: Vec<RunOutcome>,
    pub without: Vec<RunOutcome>,
    run_time_s: Option<ComparedFigure>,
    calls_per_s: Option<ComparedFigure>,
    mean_latency_us: Option<ComparedFigure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Change>,
    /// The highest exit status of a run.
    #[serde(skip)]
    pub exit_status: u8,
}

/// A figure of both sides: medians, and the ratio with its 95 % interval.
#[derive(Debug, Serialize)]
struct ComparedFigure {
    with: f64,
    without: f64,
    ratio: Interval,
}

/// Makes runs of both sides by `run`, in random order.
///
/// # Errors
/// Those of `run`. [`RunError::Killed`]: a signal ended the command. [`RunError::Stopped`]: a signal came to this process.
pub fn compare(
    options: Options,
    run: impl Fn(Side) -> Result<RunOutcome, RunError>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Comparison, RunError> {
    let order = interleave(options.pairs as usize, options.seed);
    let recorded = if options.explains { 2 } else { 0 };
    progress(Progress::Begin(order.len() + recorded));
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let mut exit_status = 0;
    for side in order {
        let outcome = run(side)?;
        progress(Progress::Step);
        stop_by_signal(&outcome)?;
        exit_status = exit_status.max(outcome.gate.ending.exit_status());
        match side {
            Side::With => with.push(outcome),
            Side::Without => without.push(outcome),
        }
    }
    let why = if options.explains { find_change(run, &with, progress)? } else { None };
    let figure =
        |of: &dyn Fn(&Outcome) -> Option<f64>| compare_figure(&with, &without, options.seed, of);
    Ok(Comparison {
        run_time_s: figure(&|o| Some(o.elapsed_s)),
        calls_per_s: figure(&|o| (o.calls() > 0).then(|| o.calls() as f64 / o.elapsed_s)),
        mean_latency_us: figure(&Outcome::mean_us),
        with,
        without,
        why,
        exit_status,
    })
}

/// Stops a comparison whose command a signal has ended, or that was asked to stop itself.
fn stop_by_signal(outcome: &RunOutcome) -> Result<(), RunError> {
    let ending = outcome.gate.ending;
    if ending.is_by_signal() {
        return Err(RunError::Killed(ending));
    }
    // A command may clear up and exit with success.
    match outcome.gate.stop_signal {
        Some(signal) => Err(RunError::Stopped(Ending::Killed { signal })),
        None => Ok(()),
    }
}

/// Finds the changes in a call's time by two more runs, which are recorded. One is without the gate and the module,
/// the other with them. They do not count as measured, because recording has a cost. If they cannot be recorded, says
/// why and returns `None`.
fn find_change(
    run: impl Fn(Side) -> Result<RunOutcome, RunError>,
    measured: &[RunOutcome],
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Option<Change>, RunError> {
    if measured.iter().all(|outcome| outcome.gate.calls() == 0) {
        return Ok(None);
    }
    let mut recorded = |side: Side| -> Result<Option<TimeSplit>, RunError> {
        let Recorded { outcome, why } = explain(|| run(side))?;
        progress(Progress::Step);
        stop_by_signal(&outcome)?;
        Ok(why.unwrap_or_else(|reason| {
            if outcome.gate.calls() > 0 {
                progress(Progress::Unexplained(&reason));
            }
            None
        }))
    };
    let Some(without) = recorded(Side::Without)? else {
        return Ok(None);
    };
    let with = recorded(Side::With)?;
    Ok(with.map(|with| Change { without, with }))
}

fn compare_figure(
    with: &[RunOutcome],
    without: &[RunOutcome],
    seed: u64,
    figure: &dyn Fn(&Outcome) -> Option<f64>,
) -> Option<ComparedFigure> {
    let figures = |runs: &[RunOutcome]| -> Option<Vec<f64>> {
        runs.iter().map(|run| figure(&run.gate)).collect()
    };
    let (with, without) = (figures(with)?, figures(without)?);
    let ratio = ratio_interval(&with, &without, seed).ok()?;
    Some(ComparedFigure { with: median(&with)?, without: median(&without)?, ratio })
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "     {:<20} {:>12} {:>12}   with / without (95 %)", "", "without", "with")?;
        let mut line = |name: &str, row: &Option<ComparedFigure>, text: &dyn Fn(f64) -> String| {
            let Some(row) = row else {
                return Ok(());
            };
            let Interval { ratio, low, high, .. } = row.ratio;
            writeln!(
                f,
                "     {name:<20} {:>12} {:>12}   {ratio:.2} ({low:.2} to {high:.2})",
                text(row.without),
                text(row.with)
            )
        };
        line("run time", &self.run_time_s, &|s| format!("{s:.2} s"))?;
        line("synchronizations/s", &self.calls_per_s, &|n| format!("{n:.0}"))?;
        line("mean latency", &self.mean_latency_us, &|us| Time::from_us(us).to_string())?;
        if self.with.len() < MIN_PAIRS {
            writeln!(f, "     too few runs for an interval that means much: --compare 5 or more")?;
        }
        match &self.why {
            Some(why) => write!(f, "{why}"),
            None => Ok(()),
        }
    }
}
