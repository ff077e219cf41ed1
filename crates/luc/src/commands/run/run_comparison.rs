//! `luc run --compare`: the comparison's progress and its report.

use std::fs::File;
use std::process::ExitCode;

use anyhow::bail;
use luc_cli::JsonFile;
use luc_gate::GatePolicy;
use luc_run::{GainComparison, GainOptions, GainProgress, PlannedRun, RunError, level_name};
use luc_stats::RunSide;
use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::stdio::{dup2_stdin, stdin};

use super::{say_failures, say_unexplained};
use crate::commands::progress_bar;

/// Compares a run with the same one without the gate and the module, where the gate only counts.
pub(super) fn main(
    with: &PlannedRun,
    options: GainOptions,
    json: Option<JsonFile>,
    is_quiet: bool,
) -> anyhow::Result<ExitCode> {
    if with.settings.policy == GatePolicy::Off {
        bail!("--compare with --policy off would compare nothing; choose another policy");
    }
    let Some(without) = with.without() else {
        bail!(
            "--compare cannot switch the kernel module off for the runs without it: run it as root, or `luc kernel set \
             --all policy=off` first"
        );
    };
    let input = RepeatedInput::new();
    let run = |side: RunSide| {
        input.rewind();
        let planned = if side == RunSide::With { with } else { &without };
        let outcome = planned.run(None)?;
        say_failures(&outcome);
        Ok(outcome)
    };
    let bar = progress_bar(1, "{bar:30} run {pos} of {len}, {eta} left");
    let compared = luc_run::compare(options, run, &mut |progress| match progress {
        GainProgress::Begin(runs) => bar.set_length(runs as u64),
        GainProgress::Step => bar.inc(1),
        GainProgress::Unexplained(reason) => bar.suspend(|| say_unexplained(reason)),
    });
    bar.finish_and_clear();
    let comparison = match compared {
        Err(ref error @ (RunError::Killed(ending) | RunError::Stopped(ending))) => {
            eprintln!("luc: {error}");
            return Ok(ExitCode::from(ending.exit_status()));
        }
        compared => compared?,
    };
    if !is_quiet {
        report(&comparison, options.pairs, level_name(with.plan.level));
    }
    let status = comparison.exit_status;
    if status != 0 {
        eprintln!("luc: the command failed in at least one run (exit status {status})");
    }
    Ok(super::write_json(json, &comparison, status))
}

/// Standard input, which each run reads from the same offset.
enum RepeatedInput {
    /// Input that runs do not use up: a terminal, /dev/null.
    Endless,
    /// A file, with the offset.
    File(u64),
}

impl RepeatedInput {
    /// Looks at this process' input. An input that one run would use up becomes /dev/null for all runs.
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

fn report(comparison: &GainComparison, pairs: u32, level: &str) {
    if let Some(last) = comparison.with.last() {
        eprintln!("luc: the last run with {level}:");
        eprint!("{last}");
    }
    eprintln!("luc: {pairs} runs with and {pairs} without {level}, interleaved; medians:");
    eprint!("{comparison}");
}
