//! `luc throttle run --compare`: its progress and its report.

use std::path::Path;
use std::process::{Command, ExitCode};

use luc_cli::JsonFile;
use luc_throttle::compare_throttle::{
    ComparedMedian, ComparedRun, ThrottleCompareOptions, ThrottleComparison, compare, count_runs,
};
use luc_throttle::run_commands::{CommandTask, ThrottledRunOptions, run};
use luc_throttle::{PolicyChoice, ThrottleError};
use luc_units::number_formats::FormattedTime;

use super::Args;
use super::show::IdleTaskWarning;
use crate::commands::{INTERRUPTED, progress_bar};

pub(super) fn main(
    args: &Args,
    rounds: u32,
    luc: &Path,
    tasks: &[CommandTask],
    options: ThrottledRunOptions,
    json: Option<JsonFile>,
) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.policy != PolicyChoice::Off,
        "--compare with --policy off would compare nothing; choose another policy"
    );
    let compared = ThrottleCompareOptions { rounds, seed: args.seed };
    let runs = count_runs(compared, tasks.len()) as u64;
    let bar = progress_bar(runs, "{bar:32} run {pos} of {len}, {eta} left");
    let comparison = compare(compared, tasks.len(), |trial| {
        if let Some(command) = &args.prepare {
            prepare(command)?;
        }
        let mut options = options.clone();
        if trial != ComparedRun::With {
            options.engine.policy = PolicyChoice::Off;
        }
        let chosen = match trial {
            ComparedRun::Alone(number) => &tasks[number..=number],
            ComparedRun::With | ComparedRun::Without => tasks,
        };
        let outcome = run(luc, chosen, &options);
        bar.inc(1);
        outcome
    });
    bar.finish_and_clear();
    let comparison = match comparison {
        Err(error @ ThrottleError::Interrupted) => {
            eprintln!("luc: {error}");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        other => other?,
    };
    report(&comparison, &args.policy, tasks.len());
    if let Some(json) = json {
        json.write(&comparison)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn prepare(command: &std::ffi::OsStr) -> Result<(), ThrottleError> {
    let text = command.to_string_lossy().into_owned();
    let status = Command::new("/bin/sh").arg("-c").arg(command).status().map_err(|source| {
        ThrottleError::Process { what: format!("cannot run {text:?}"), source }
    })?;
    if status.success() {
        return Ok(());
    }
    Err(ThrottleError::Failed { command: text, status: status.code().unwrap_or(128) })
}

fn report(all: &ThrottleComparison, policy: &PolicyChoice, tasks: usize) {
    eprintln!("luc throttle: {tasks} tasks, policy {policy}, {} rounds; medians", all.rounds.len());
    let is_interval = all.throughput.interval.is_some();
    let ends = if is_interval {
        "95 % interval".to_owned()
    } else {
        format!("range of {}", all.rounds.len())
    };
    eprintln!("     {:<24} {:>12} {:>12}   with / without ({ends})", "", "without", "with");
    let seconds = |s: f64| FormattedTime(s * 1e9).to_string();
    let plain = |value: f64| format!("{value:.2}");
    let line = |name: &str, row: &ComparedMedian, text: &dyn Fn(f64) -> String| {
        let ends = row
            .interval
            .or(row.range)
            .map_or_else(String::new, |(low, high)| format!(" ({low:.2} to {high:.2})"));
        eprintln!(
            "     {name:<24} {:>12} {:>12}   {:.2}{ends}",
            text(row.without),
            text(row.with),
            row.ratio
        );
    };
    line("tasks per hour", &all.throughput, &|per_s| format!("{:.0}", per_s * 3600.0));
    line("mean task done after", &all.mean_finish_s, &seconds);
    line("weighted speedup (WS)", &all.weighted_speedup, &plain);
    line("worst slowdown", &all.worst_slowdown, &plain);
    eprintln!(
        "     the task that gains least takes {:.2} times as long as without",
        all.worst_against_without
    );
    if let Some(round) = all.rounds.first() {
        eprint!("{}", IdleTaskWarning(&round.without));
    }
    if !is_interval {
        eprintln!("     a range has no confidence: --compare 5 or more gives a 95 % interval");
    }
}
