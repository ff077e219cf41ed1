//! `luc-twin`: the search twin's command line.

mod arguments;

use std::process::ExitCode;

use clap::Parser as _;
use luc_twin::{TwinError, remove_cgroup_at_end};

use arguments::{Arguments, Command};

/// Bad input, or a machine that cannot do it.
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
        Command::FrontEnd(arguments) => arguments.options().run(),
        Command::Client(arguments) => arguments.options().run(),
        Command::Run(arguments) => {
            let options = arguments.options()?;
            options.run(|| println!("all processes are there"))?;
            println!("the truth is in {}", options.truth.display());
            Ok(())
        }
        Command::RemoveCgroup { path } => remove_cgroup_at_end(&path),
    }
}
