//! `luc bench`: workloads that wait for fsync, or for a disk that they share, measured.

mod ack_client;
mod append;
mod commit;
mod fault_client;
mod filebench;
mod initial_write;
mod metarates;
mod oltp;
mod overwrite;
mod ranking;
mod timed_options;
mod varmail;
mod workload_output;

use std::process::ExitCode;

use luc_workload::BenchError;

use super::INTERRUPTED;

/// Measure workloads that wait for fsync, or for a shared disk
///
/// Each run works in a fresh subdirectory of --dir and removes it at the end; ranking uses files that are there.
/// After Ctrl-C it prints the figures so far, with status 130.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, clap::Subcommand)]
enum Workload {
    Metarates(metarates::Args),
    Overwrite(overwrite::Args),
    Append(append::Args),
    Varmail(varmail::Args),
    InitialWrite(initial_write::Args),
    Oltp(oltp::Args),
    Filebench(filebench::Args),
    Commit(commit::Args),
    Ranking(ranking::Args),
    #[command(hide = true)]
    AckClient(ack_client::Args),
    #[command(hide = true)]
    FaultClient(fault_client::Args),
}

/// Directories of the clients' files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Directories {
    /// All in one directory
    One,
    /// Each in a directory of its own
    Own,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    luc_host::interrupt_flag::install()?;
    match args.workload {
        Workload::Metarates(args) => metarates::main(&args),
        Workload::Overwrite(args) => overwrite::main(&args),
        Workload::Append(args) => append::main(&args),
        Workload::Varmail(args) => varmail::main(&args),
        Workload::InitialWrite(args) => initial_write::main(&args),
        Workload::Oltp(args) => oltp::main(&args),
        Workload::Filebench(args) => filebench::main(&args),
        Workload::Commit(args) => commit::main(&args),
        Workload::Ranking(args) => ranking::main(&args),
        Workload::AckClient(args) => ack_client::main(args),
        Workload::FaultClient(args) => fault_client::main(args),
    }
}

/// 0, or 130 if the run was interrupted.
fn status(interrupted: bool) -> ExitCode {
    if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS }
}

/// The exit status of a run that was interrupted before it had figures; other errors pass through.
fn or_interrupted(error: BenchError) -> anyhow::Result<ExitCode> {
    if matches!(error, BenchError::Interrupted) {
        eprintln!("luc: {error}");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Err(error.into())
}
