//! The `luc-fleet` command line: parse, dispatch, and turn an outcome into an exit status: 0 done, 2 bad input.

#[macro_use]
extern crate luc_units;

mod arguments;
mod exporting;
mod files;
mod handover;
#[cfg(feature = "manual")]
mod manual;
mod watching;
mod windows;

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use arguments::{Cli, Command, Common, Counters, Words};
use handover::{Program, STORE, hand_over};
use luc_fleet::export::ExportError;
use luc_fleet::report::ReportError;
use luc_fleet::text::Text;
use luc_fleet::{FleetError, Joined, Show, Tables, Wanted, counters, events_of, explain, fit, why};
use luc_fleet_rings::PullError;
use luc_report::output::OutputError;
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
    let cli: Cli = match luc_cli::parse() {
        Ok(cli) => cli,
        Err(refusal) => return refusal.report(),
    };
    match run(cli.command) {
        Ok(status) => luc_cli::finish("luc-fleet", status),
        Err(failure) => luc_cli::fail("luc-fleet", &failure),
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Fit(args) => {
            let joined = read_joined(&args.common, Tables::OfClocks)?;
            print(&fit(&joined)?, args.common.json)?;
        }
        Command::Explain(args) => {
            // What cannot be read is said before the traces are.
            let spans = args.spans.read()?;
            let joined = read_joined(&args.common, Tables::All)?.with_spans(spans);
            let wanted = Wanted { request: args.request, rows: args.rows };
            print(&explain(&joined, wanted)?, args.common.json)?;
        }
        Command::Why(args) => {
            let joined = read_joined(&args.common, Tables::All)?;
            print(&why(&joined, &args.who, args.at)?, args.common.json)?;
        }
        Command::Counters(args) => print_counters(&args)?,
        Command::Report(args) => return files::write(args),
        Command::Pull(args) => return windows::pull(&args),
        Command::Freeze(args) => windows::freeze(&args)?,
        Command::Watch(args) => watching::watch(&args)?,
        Command::Window(args) => windows::send(&args)?,
        Command::Push(args) => return Err(run_other(STORE, "push", args)),
        Command::Stored(args) => return Err(run_other(STORE, "stored", args)),
        Command::Export(args) => return exporting::run(&args),
        #[cfg(feature = "manual")]
        Command::Completions(args) => manual::completions(&args)?,
        #[cfg(feature = "manual")]
        Command::Man(args) => manual::man(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn run_other(program: Program, command: &str, args: Words) -> Failure {
    Failure::NoProgram(hand_over(program, command, args.words))
}

fn read_joined(common: &Common, tables: Tables) -> Result<Joined, FleetError> {
    Joined::read(&common.sources, tables, common.span.window())
}

fn print_counters(args: &Counters) -> Result<(), Failure> {
    if let Some(processor) = &args.events {
        return Ok(writeln!(io::stdout(), "{}", events_of(processor).map_err(FleetError::from)?)?);
    }
    // The command line has a file or asks for events.
    let file = args.file.as_deref().unwrap_or(Path::new(""));
    let show = Show {
        process: args.process.as_deref(),
        processor: args.processor.as_deref(),
        every_ns: args.every,
    };
    print(&counters(file, show)?, args.json)
}

fn print<T: Serialize>(what: &T, is_json: bool) -> Result<(), Failure>
where
    for<'a> Text<'a, T>: Display,
{
    let is_terminal = io::stdout().is_terminal();
    let colours = is_terminal && std::env::var_os("NO_COLOR").is_none();
    // Else each line would be a write of its own.
    let mut out = BufWriter::new(io::stdout().lock());
    if is_json {
        luc_cli::write_json(&mut out, what)?;
    } else {
        write!(out, "{}", Text { what, colours })?;
    }
    Ok(out.flush()?)
}
