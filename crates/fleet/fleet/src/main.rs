//! The `luc-fleet` command line: parse, dispatch, and turn an outcome into an exit status: 0 done, 2 bad input.

#[macro_use]
extern crate luc_units;

mod arguments;
mod companion_program;
mod export_command;
#[cfg(feature = "manual")]
mod manual;
mod report_files;
mod watch_command;
mod window_commands;

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use arguments::{CountersArgs, FleetCli, FleetCommand, ForwardedArgs, TraceArgs};
use companion_program::{CompanionProgram, STORE, hand_over};
use luc_fleet::export::ExportError;
use luc_fleet::report::ReportError;
use luc_fleet::text::ResultText;
use luc_fleet::{
    CounterSelection, ExplanationOptions, FleetError, JoinedTraces, TablesToRead, counters,
    events_of, explain, fit, why,
};
use luc_fleet_rings::PullError;
use luc_report::atomic_file::OutputError;
use serde::Serialize;

/// Reason why a command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error("the output cannot be written: {0}; check the space left")]
    Output(#[from] io::Error),
    #[error("{path}: two formats cannot go to one file; name another one", path = .0.display())]
    SameFile(PathBuf),
    #[error(transparent)]
    File(#[from] OutputError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error(transparent)]
    Pull(#[from] PullError),
    #[error("a tar stream is no text: send it to a file or to another program")]
    Terminal,
    #[error("{0}")]
    NoProgram(String),
}

fn main() -> ExitCode {
    let cli: FleetCli = match luc_cli::parse() {
        Ok(cli) => cli,
        Err(refusal) => return refusal.report(),
    };
    match run(cli.command) {
        Ok(status) => luc_cli::finish("luc-fleet", status),
        Err(failure) => luc_cli::fail("luc-fleet", &failure),
    }
}

fn run(command: FleetCommand) -> Result<ExitCode, Failure> {
    match command {
        FleetCommand::Fit(args) => {
            let joined = read_joined(&args.common, TablesToRead::OfClocks)?;
            print(&fit(&joined)?, args.common.json)?;
        }
        FleetCommand::Explain(args) => {
            // What cannot be read is said before the traces are.
            let spans = args.spans.read()?;
            let joined = read_joined(&args.common, TablesToRead::All)?.with_spans(spans);
            let wanted = ExplanationOptions { request: args.request, rows: args.rows };
            print(&explain(&joined, wanted)?, args.common.json)?;
        }
        FleetCommand::Why(args) => {
            let joined = read_joined(&args.common, TablesToRead::All)?;
            print(&why(&joined, &args.who, args.at)?, args.common.json)?;
        }
        FleetCommand::Counters(args) => print_counters(&args)?,
        FleetCommand::Report(args) => return report_files::write(args),
        FleetCommand::Pull(args) => return window_commands::pull(&args),
        FleetCommand::Freeze(args) => window_commands::freeze(&args)?,
        FleetCommand::Watch(args) => watch_command::watch(&args)?,
        FleetCommand::Window(args) => window_commands::send(&args)?,
        FleetCommand::Push(args) => return Err(run_other(STORE, "push", args)),
        FleetCommand::Stored(args) => return Err(run_other(STORE, "stored", args)),
        FleetCommand::Export(args) => return export_command::run(&args),
        #[cfg(feature = "manual")]
        FleetCommand::Completions(args) => manual::completions(&args)?,
        #[cfg(feature = "manual")]
        FleetCommand::Man(args) => manual::man(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn run_other(program: CompanionProgram, command: &str, args: ForwardedArgs) -> Failure {
    Failure::NoProgram(hand_over(program, command, args.words))
}

fn read_joined(common: &TraceArgs, tables: TablesToRead) -> Result<JoinedTraces, FleetError> {
    JoinedTraces::read(&common.sources, tables, common.span.window())
}

fn print_counters(args: &CountersArgs) -> Result<(), Failure> {
    if let Some(processor) = &args.events {
        return Ok(writeln!(io::stdout(), "{}", events_of(processor).map_err(FleetError::from)?)?);
    }
    // The command line has a file or asks for events.
    let file = args.file.as_deref().unwrap_or(Path::new(""));
    let show = CounterSelection {
        process: args.process.as_deref(),
        processor: args.processor.as_deref(),
        every_ns: args.every,
    };
    print(&counters(file, show)?, args.json)
}

fn print<T: Serialize>(what: &T, is_json: bool) -> Result<(), Failure>
where
    for<'a> ResultText<'a, T>: Display,
{
    let is_terminal = io::stdout().is_terminal();
    let colours = is_terminal && std::env::var_os("NO_COLOR").is_none();
    // Else each line would be a write of its own.
    let mut out = BufWriter::new(io::stdout().lock());
    if is_json {
        luc_cli::write_json(&mut out, what)?;
    } else {
        write!(out, "{}", ResultText { what, colours })?;
    }
    Ok(out.flush()?)
}
