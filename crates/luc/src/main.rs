//! The `luc` command line: parse, dispatch, and turn an outcome into an exit status.
//!
//! Exit status: 0 done; 1 the answer is bad news (a power cut lost data, a program was not told of a failed write); 2
//! the input or the machine does not allow it, with the reason in one line. `luc run` passes on its command's status.
//! A reader that has gone (`luc ... | head`) changes nothing of that: 0, or what the command's work has come to.

#![warn(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
extern crate luc_units;

mod commands;
mod restore_after_kill;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The version, in packages with the commit.
const VERSION: &str = match option_env!("LUC_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Find the I/O waits that faster hardware does not cure, and remove them while programs run
#[derive(Debug, Parser)]
#[command(name = "luc", version = VERSION, max_term_width = 100)]
#[cfg_attr(
    not(all(
        feature = "manual",
        feature = "report",
        feature = "service",
        feature = "sweep",
        feature = "throttle",
        feature = "top"
    )),
    command(
        after_help = "This build lacks commands that `make demo` does not use; `make product` builds them."
    )
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(commands::demo::Args),
    Run(commands::run::Args),
    #[cfg(feature = "service")]
    Enable(commands::service::EnableArgs),
    #[cfg(feature = "service")]
    Disable(commands::service::DisableArgs),
    #[cfg(feature = "service")]
    Status(commands::service::ServiceStatusArgs),
    #[cfg(feature = "service")]
    Attach(commands::service::AttachArgs),
    #[cfg(feature = "service")]
    OciProfile(commands::oci_profile::Args),
    Record(commands::record::Args),
    #[cfg(feature = "report")]
    Explain(commands::explain::Args),
    #[cfg(feature = "report")]
    Report(commands::report::Args),
    #[cfg(feature = "top")]
    Top(commands::top::Args),
    Fleet(commands::fleet::Args),
    Disk(commands::disk::Args),
    Kernel(commands::kernel::Args),
    Powercut(commands::powercut::Args),
    Faults(Box<commands::faults::Args>),
    Bench(commands::bench::Args),
    #[cfg(feature = "sweep")]
    Sweep(commands::sweep::Args),
    #[cfg(feature = "sweep")]
    Advise(Box<commands::advise::Args>),
    #[cfg(feature = "throttle")]
    Throttle(commands::throttle::Args),
    #[cfg(feature = "manual")]
    Completions(commands::completions::Args),
    #[cfg(feature = "manual")]
    Man(commands::man::Args),
}

impl Command {
    /// Whether this process restores by itself, or is a helper of another.
    fn restores(&self) -> bool {
        match self {
            #[cfg(feature = "sweep")]
            Self::Sweep(args) => args.restores(),
            #[cfg(feature = "throttle")]
            Self::Throttle(args) => args.is_helper(),
            Self::Demo(args) => args.is_helper(),
            Self::Disk(args) => args.is_daemon(),
            Self::Kernel(args) => args.is_watcher(),
            _ => false,
        }
    }
}

fn main() -> ExitCode {
    let cli: Cli = match luc_cli::parse() {
        Ok(cli) => cli,
        Err(refusal) => {
            // Whatever root asked of luc, nobody stays frozen.
            restore_after_kill::first();
            return refusal.report();
        }
    };
    if !cli.command.restores() {
        restore_after_kill::first();
    }
    let outcome = match cli.command {
        Command::Demo(args) => commands::demo::main(args),
        Command::Run(args) => commands::run::main(args),
        #[cfg(feature = "service")]
        Command::Enable(args) => commands::service::enable(&args),
        #[cfg(feature = "service")]
        Command::Disable(args) => commands::service::disable(&args),
        #[cfg(feature = "service")]
        Command::Status(args) => commands::service::status(&args),
        #[cfg(feature = "service")]
        Command::Attach(args) => commands::service::attach(&args),
        #[cfg(feature = "service")]
        Command::OciProfile(args) => commands::oci_profile::main(&args),
        Command::Record(args) => commands::record::main(args),
        #[cfg(feature = "report")]
        Command::Explain(args) => commands::explain::main(args),
        #[cfg(feature = "report")]
        Command::Report(args) => commands::report::main(args),
        #[cfg(feature = "top")]
        Command::Top(args) => commands::top::main(args),
        Command::Fleet(args) => commands::fleet::main(args),
        Command::Disk(args) => commands::disk::main(args),
        Command::Kernel(args) => commands::kernel::main(args),
        Command::Powercut(args) => commands::powercut::main(args),
        Command::Faults(args) => commands::faults::main(*args),
        Command::Bench(args) => commands::bench::main(args),
        #[cfg(feature = "sweep")]
        Command::Sweep(args) => commands::sweep::main(args),
        #[cfg(feature = "sweep")]
        Command::Advise(args) => commands::advise::main(*args),
        #[cfg(feature = "throttle")]
        Command::Throttle(args) => commands::throttle::main(args),
        #[cfg(feature = "manual")]
        Command::Completions(args) => commands::completions::main(args),
        #[cfg(feature = "manual")]
        Command::Man(args) => commands::man::main(args),
    };
    match outcome {
        Ok(status) => luc_cli::finish("luc", status),
        Err(error) => luc_cli::fail("luc", error.as_ref()),
    }
}
