//! `luc run --compare`: runs with and without the gate or the module, in random order, and their ratio.

use std::process::ExitCode;

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use luc_gate_core::Policy;
use luc_gate_core::launch::text::Time;
use luc_gate_core::launch::{Command, Ending, Outcome};
use luc_kernel::Machine;
use luc_kernel::level::Plan;
use luc_stats::{Interval, Side, interleave, median, ratio_interval};
use serde::Serialize;

use super::level::{self, RunOutcome};
use super::why::{self, Change, Recorded, Why};
use super::{Args, JsonFile, say_why_not};

/// All runs and what they say together.
#[derive(Debug, Serialize)]
struct Comparison {
    with: Vec<RunOutcome>,
    without: Vec<RunOutcome>,
    run_time_s: Option<Row>,
    calls_per_s: Option<Row>,
    mean_latency_us: Option<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Change>,
}

/// One figure, both ways: medians, and the ratio with its 95 % interval.
#[derive(Debug, Serialize)]
struct Row {
    with: f64,
    without: f64,
    /// With over without.
    ratio: Interval,
}

pub(super) fn main(
    args: &Args,
    machine: &Machine,
    plan: &Plan,
    command: &Command,
    pairs: u32,
    json: Option<&mut JsonFile>,
) -> anyhow::Result<ExitCode> {
    if args.policy == Policy::Off {
        bail!("--compare with --policy off would compare nothing; choose another policy");
    }
    let Some(plan_without) = plan.without() else {
        bail!(
            "--compare cannot switch the kernel module off for the runs without it: run it as root, or `luc kernel set \
             --all policy=off` first"
        );
    };
    let run = |side: Side| {
        let mut settings = args.settings();
        let mut plan = plan.clone();
        if side == Side::Without {
            settings.policy = Policy::Off;
            plan = plan_without.clone();
        }
        level::run(machine, plan, command, &settings)
    };
    let order = interleave(pairs as usize, args.seed);
    let recorded = if args.wants_why() { 2 } else { 0 };
    let progress = progress(order.len() + recorded);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let mut worst = 0;
    for side in order {
        let outcome = run(side)?;
        progress.inc(1);
        match outcome.gate.ending {
            Ending::Exited(status) => worst = worst.max(status),
            Ending::Killed { .. } => {
                progress.finish_and_clear();
                eprintln!("luc: a signal ended the command; the comparison stops");
                return Ok(ExitCode::from(outcome.gate.ending.exit_status()));
            }
        }
        if side == Side::With {
            &mut with
        } else {
            &mut without
        }
        .push(outcome);
    }
    let why = if args.wants_why() {
        change(run, &with, &progress)?
    } else {
        None
    };
    progress.finish_and_clear();
    let comparison = Comparison {
        run_time_s: row(&with, &without, args.seed, |o| Some(o.elapsed_s)),
        calls_per_s: row(&with, &without, args.seed, |o| {
            (o.calls() > 0).then(|| o.calls() as f64 / o.elapsed_s)
        }),
        mean_latency_us: row(&with, &without, args.seed, Outcome::mean_us),
        with,
        without,
        why,
    };
    if !args.quiet {
        report(&comparison, pairs, level::name(plan.level));
    }
    if worst != 0 {
        eprintln!("luc: the command failed in at least one run (exit status {worst})");
    }
    if let Some(json) = json {
        json.write(&comparison)?;
    }
    Ok(ExitCode::from(worst))
}

/// What changes in a call's time, by one more run without the gate and the module and one with them, both recorded. They
/// do not count as measured, since being recorded costs something. `None`, and the reason said, if they cannot be.
fn change(
    run: impl Fn(Side) -> anyhow::Result<RunOutcome>,
    measured: &[RunOutcome],
    progress: &ProgressBar,
) -> anyhow::Result<Option<Change>> {
    if measured.iter().all(|outcome| outcome.gate.calls() == 0) {
        return Ok(None);
    }
    let recorded = |side: Side| -> anyhow::Result<Option<Why>> {
        let Recorded { outcome, why } = why::run(|| run(side))?;
        progress.inc(1);
        Ok(why.unwrap_or_else(|reason| {
            progress.suspend(|| say_why_not(&outcome.gate, &reason));
            None
        }))
    };
    let Some(without) = recorded(Side::Without)? else {
        return Ok(None);
    };
    let with = recorded(Side::With)?;
    Ok(with.map(|with| Change { without, with }))
}

fn row(
    with: &[RunOutcome],
    without: &[RunOutcome],
    seed: u64,
    figure: impl Fn(&Outcome) -> Option<f64>,
) -> Option<Row> {
    let with: Vec<f64> = with
        .iter()
        .map(|run| figure(&run.gate))
        .collect::<Option<_>>()?;
    let without: Vec<f64> = without
        .iter()
        .map(|run| figure(&run.gate))
        .collect::<Option<_>>()?;
    let ratio = ratio_interval(&with, &without, seed).ok()?;
    Some(Row {
        with: median(&with)?,
        without: median(&without)?,
        ratio,
    })
}

fn report(comparison: &Comparison, pairs: u32, what: &str) {
    if let Some(last) = comparison.with.last() {
        eprintln!("luc: the last run with {what}:");
        eprint!("{last}");
    }
    eprintln!("luc: {pairs} runs with and {pairs} without {what}, interleaved; medians:");
    eprintln!(
        "     {:<20} {:>12} {:>12}   with / without (95 %)",
        "", "without", "with"
    );
    let line = |name: &str, row: &Option<Row>, text: &dyn Fn(f64) -> String| {
        if let Some(row) = row {
            let Interval {
                ratio, low, high, ..
            } = row.ratio;
            eprintln!(
                "     {name:<20} {:>12} {:>12}   {ratio:.2} ({low:.2} to {high:.2})",
                text(row.without),
                text(row.with)
            );
        }
    };
    line("run time", &comparison.run_time_s, &|s| format!("{s:.2} s"));
    line("synchronizations/s", &comparison.calls_per_s, &|n| {
        format!("{n:.0}")
    });
    line("mean latency", &comparison.mean_latency_us, &|us| {
        Time(us).to_string()
    });
    if pairs < 3 {
        eprintln!("     too few runs for an interval that means much: --compare 5 or more");
    }
    if let Some(why) = &comparison.why {
        eprint!("{why}");
    }
}

fn progress(runs: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} run {pos} of {len}, {eta} left");
    let bar = ProgressBar::new(runs as u64);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
