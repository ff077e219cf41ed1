//! `luc run --compare`: the comparison's progress and its report.

use std::fs::File;
use std::process::ExitCode;

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use luc_gate::Policy;
use luc_launch::{Command, Reach};
use luc_module::Machine;
use luc_module::level::Plan;
use luc_run::{Comparison, Options, Progress, RunError, level_name};
use luc_stats::Side;
use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::stdio::{dup2_stdin, stdin};

use super::{Args, say_failures, say_unexplained};
use crate::commands::json_file::JsonFile;

#[derive(Clone, Copy, Debug)]
pub(super) struct Compared<'a> {
    pub(super) command: &'a Command,
    /// How the gate gets to it, in the runs without it as well: there it only counts.
    pub(super) reach: Reach,
    /// Runs of each side.
    pub(super) pairs: u32,
}

pub(super) fn main(
    args: &Args,
    machine: &Machine,
    plan: &Plan,
    compared: Compared<'_>,
    json: Option<JsonFile>,
) -> anyhow::Result<ExitCode> {
    let Compared { command, reach, pairs } = compared;
    if args.policy == Policy::Off {
        bail!("--compare with --policy off would compare nothing; choose another policy");
    }
    let Some(plan_without) = plan.without() else {
        bail!(
            "--compare cannot switch the kernel module off for the runs without it: run it as root, or `luc kernel set \
             --all policy=off` first"
        );
    };
    let luc = super::program();
    let input = RepeatedInput::new();
    let run = |side: Side| {
        input.rewind();
        let (mut settings, mut plan) = (args.settings(), plan.clone());
        if side == Side::Without {
            settings.policy = Policy::Off;
            plan = plan_without.clone();
        }
        let outcome = luc_run::run(&luc, machine, plan, command, &settings, reach, None)?;
        say_failures(&outcome);
        Ok(outcome)
    };
    let options = Options { pairs, seed: args.seed, explains: args.wants_why() };
    let bar = bar();
    let compared = luc_run::compare(options, run, &mut |progress| match progress {
        Progress::Begin(runs) => bar.set_length(runs as u64),
        Progress::Step => bar.inc(1),
        Progress::Unexplained(reason) => bar.suspend(|| say_unexplained(reason)),
    });
    bar.finish_and_clear();
    let comparison = match compared {
        Err(ref error @ (RunError::Killed(ending) | RunError::Stopped(ending))) => {
            eprintln!("luc: {error}");
            return Ok(ExitCode::from(ending.exit_status()));
        }
        compared => compared?,
    };
    if !args.quiet {
        report(&comparison, pairs, level_name(plan.level));
    }
    let status = comparison.exit_status;
    if status != 0 {
        eprintln!("luc: the command failed in at least one run (exit status {status})");
    }
    Ok(super::write_json(json, &comparison, status))
}

/// Standard input, which each run reads from the same place on.
enum RepeatedInput {
    /// Input that runs do not use up: a terminal, /dev/null.
    Endless,
    /// A file, and the place.
    File(u64),
}

impl RepeatedInput {
    /// Looks at this process' input. What one run would use up becomes /dev/null, for all of them.
    fn new() -> Self {
        let kind = fstat(stdin()).map(|found| FileType::from_raw_mode(found.st_mode));
        match kind {
            Ok(FileType::RegularFile | FileType::BlockDevice) => {
                seek(stdin(), SeekFrom::Current(0)).map_or(Self::Endless, Self::File)
            }
            Ok(FileType::Fifo | FileType::Socket) => {
                let given = File::open("/dev/null").map(dup2_stdin);
                if matches!(given, Ok(Ok(()))) {
                    eprintln!(
                        "luc: standard input is a pipe or a socket, which the first run would use up: all runs get \
                         /dev/null; give a file instead"
                    );
                }
                Self::Endless
            }
            _ => Self::Endless,
        }
    }

    fn rewind(&self) {
        if let Self::File(place) = *self {
            // It could be told before, so it can be set.
            let _ = seek(stdin(), SeekFrom::Start(place));
        }
    }
}

fn report(comparison: &Comparison, pairs: u32, level: &str) {
    if let Some(last) = comparison.with.last() {
        eprintln!("luc: the last run with {level}:");
        eprint!("{last}");
    }
    eprintln!("luc: {pairs} runs with and {pairs} without {level}, interleaved; medians:");
    eprint!("{comparison}");
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} run {pos} of {len}, {eta} left");
    let bar = ProgressBar::new(1);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
