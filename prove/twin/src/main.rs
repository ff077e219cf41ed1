//! `luc-twin`: the search twin's command line.

mod arguments;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use luc_twin::{TwinError, remove_cgroup_at_end};

use arguments::{Arguments, Command};

/// Exit status for bad input, or a machine that cannot do it.
const STATUS_UNABLE: u8 = 2;

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("luc-twin: {error}");
            ExitCode::from(STATUS_UNABLE)
        }
    }
}

fn run(command: Command) -> Result<(), TwinError> {
    match command {
        Command::BackEnd(arguments) => arguments.options().run(),
        Command::FrontEnd(options) => options.run(),
        Command::Client(arguments) => arguments.options().run(),
        Command::Run(arguments) => {
            let waits = arguments.waits();
            let options = arguments.options()?;
            options.run(|| {
                say("all processes are there");
                if waits {
                    // Also the end of the input, or that there is none, says to go on.
                    let _ = io::stdin().read_line(&mut String::new());
                }
            })?;
            say(&format!("the truth is in {}", options.truth.display()));
            Ok(())
        }
        Command::RemoveCgroup { path } => remove_cgroup_at_end(&path),
        Command::Neighbour(neighbour) => {
            let parent = neighbour.parent;
            neighbour.options().run(parent)
        }
    }
}

/// Prints a line. A closed output is no error.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}
