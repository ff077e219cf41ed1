//! Runs a command with and without the gate or the module, in random order, and compares times and calls.

use std::fmt;

use luc_launch::{CommandEnding, GatedRunOutcome};
use luc_stats::{MIN_RUNS_OF_INTERVAL, RatioEnds, RunSide, interleave, median, ratio_ends};
use luc_units::number_formats::FormattedTime;
use serde::Serialize;

use crate::{RecordedRun, RunError, RunOutcome, TimeSplit, TimeSplitChange, explain};

#[derive(Clone, Copy, Debug)]
pub struct GainOptions {
    /// Runs of each side.
    pub pairs: u32,
    /// Seed of the random order.
    pub seed: u64,
    /// Whether one more run of each side is recorded, to say what the calls' time went into.
    pub explains: bool,
}

/// Progress of a comparison.
#[derive(Clone, Copy, Debug)]
pub enum GainProgress<'a> {
    /// Number of runs that will be made.
    Begin(usize),
    Step,
    /// Reason why the calls' time is not known.
    Unexplained(&'a str),
}

/// All runs, and their figures together.
#[derive(Debug, Serialize)]
pub struct GainComparison {
    /// The runs with the gate or the module.
    pub with: Vec<RunOutcome>,
    pub without: Vec<RunOutcome>,
    run_time_s: Option<ComparedFigure>,
    calls_per_s: Option<ComparedFigure>,
    mean_latency_us: Option<ComparedFigure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<TimeSplitChange>,
    /// The highest exit status of a run.
    #[serde(skip)]
    pub exit_status: u8,
}

/// A figure of both sides: medians, and the ratio with its 95 % interval, or of few runs with its range.
#[derive(Debug, Serialize)]
struct ComparedFigure {
    with: f64,
    without: f64,
    ratio: RatioEnds,
}

/// Makes runs of both sides by `run`, in random order.
///
/// # Errors
/// Those of `run`. [`RunError::Killed`]: a signal ended the command. [`RunError::Stopped`]: a signal came to this
/// process.
pub fn compare(
    options: GainOptions,
    run: impl Fn(RunSide) -> Result<RunOutcome, RunError>,
    progress: &mut dyn FnMut(GainProgress<'_>),
) -> Result<GainComparison, RunError> {
    let order = interleave(options.pairs as usize, options.seed);
    let recorded = if options.explains { 2 } else { 0 };
    progress(GainProgress::Begin(order.len() + recorded));
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let mut exit_status = 0;
    for side in order {
        let outcome = run(side)?;
        progress(GainProgress::Step);
        stop_by_signal(&outcome)?;
        exit_status = exit_status.max(outcome.gate.ending.exit_status());
        match side {
            RunSide::With => with.push(outcome),
            RunSide::Without => without.push(outcome),
        }
    }
    let why = if options.explains { find_change(run, &with, progress)? } else { None };
    let figure = |of: &dyn Fn(&GatedRunOutcome) -> Option<f64>| {
        compare_figure(&with, &without, options.seed, of)
    };
    Ok(GainComparison {
        run_time_s: figure(&|o| Some(o.elapsed_s)),
        calls_per_s: figure(&|o| (o.calls() > 0).then(|| o.calls() as f64 / o.elapsed_s)),
        mean_latency_us: figure(&GatedRunOutcome::mean_us),
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
        Some(signal) => Err(RunError::Stopped(CommandEnding::Killed { signal })),
        None => Ok(()),
    }
}

/// Finds the changes in a call's time by two more runs, which are recorded. One is without the gate and the module,
/// the other with them. They do not count as measured, because recording has a cost. If they cannot be recorded, says
/// why and returns `None`.
fn find_change(
    run: impl Fn(RunSide) -> Result<RunOutcome, RunError>,
    measured: &[RunOutcome],
    progress: &mut dyn FnMut(GainProgress<'_>),
) -> Result<Option<TimeSplitChange>, RunError> {
    if measured.iter().all(|outcome| outcome.gate.calls() == 0) {
        return Ok(None);
    }
    let mut recorded = |side: RunSide| -> Result<Option<TimeSplit>, RunError> {
        let RecordedRun { outcome, why } = explain(|| run(side))?;
        progress(GainProgress::Step);
        stop_by_signal(&outcome)?;
        Ok(why.unwrap_or_else(|reason| {
            if outcome.gate.calls() > 0 {
                progress(GainProgress::Unexplained(&reason));
            }
            None
        }))
    };
    let Some(without) = recorded(RunSide::Without)? else {
        return Ok(None);
    };
    let with = recorded(RunSide::With)?;
    Ok(with.map(|with| TimeSplitChange { without, with }))
}

fn compare_figure(
    with: &[RunOutcome],
    without: &[RunOutcome],
    seed: u64,
    figure: &dyn Fn(&GatedRunOutcome) -> Option<f64>,
) -> Option<ComparedFigure> {
    let figures = |runs: &[RunOutcome]| -> Option<Vec<f64>> {
        runs.iter().map(|run| figure(&run.gate)).collect()
    };
    let (with, without) = (figures(with)?, figures(without)?);
    let ratio = ratio_ends(&with, &without, seed).ok()?;
    Some(ComparedFigure { with: median(&with)?, without: median(&without)?, ratio })
}

impl fmt::Display for GainComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.with.len();
        let is_interval = pairs >= MIN_RUNS_OF_INTERVAL;
        let ends =
            if is_interval { "95 % interval".to_owned() } else { format!("range of {pairs}") };
        writeln!(f, "     {:<20} {:>12} {:>12}   with / without ({ends})", "", "without", "with")?;
        let mut line = |name: &str, row: &Option<ComparedFigure>, text: &dyn Fn(f64) -> String| {
            let Some(row) = row else {
                return Ok(());
            };
            let RatioEnds { ratio, low, high, .. } = row.ratio;
            writeln!(
                f,
                "     {name:<20} {:>12} {:>12}   {ratio:.2} ({low:.2} to {high:.2})",
                text(row.without),
                text(row.with)
            )
        };
        line("run time", &self.run_time_s, &|s| format!("{s:.2} s"))?;
        line("synchronizations/s", &self.calls_per_s, &|n| format!("{n:.0}"))?;
        line("mean latency", &self.mean_latency_us, &|us| FormattedTime::from_us(us).to_string())?;
        if !is_interval {
            writeln!(
                f,
                "     a range has no confidence: --compare {MIN_RUNS_OF_INTERVAL} or more gives a 95 % interval"
            )?;
        }
        match &self.why {
            Some(why) => write!(f, "{why}"),
            None => Ok(()),
        }
    }
}
