//! `luc bench ack-client`: the clients of `luc powercut`, run by it as a process of their own.

use std::path::PathBuf;
use std::process::ExitCode;

use luc_powercut::ack_clients::{self, AckClients};
use luc_workload::workers::ClientKind;

/// The clients of `luc powercut`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory on the disk under trial
    #[arg(long)]
    dir: PathBuf,
    /// Seed of the round
    #[arg(long)]
    seed: u64,
    /// Number of clients
    #[arg(long)]
    threads: usize,
    /// Clients are processes
    #[arg(long)]
    processes: bool,
    /// Acknowledge without fsync
    #[arg(long)]
    unsafe_no_fsync: bool,
}

/// Runs the clients until they are killed.
pub(super) fn main(args: Args) -> anyhow::Result<ExitCode> {
    ack_clients::run(&AckClients {
        directory: args.dir,
        seed: args.seed,
        clients: args.threads,
        kind: if args.processes { ClientKind::Process } else { ClientKind::Thread },
        unsafe_no_fsync: args.unsafe_no_fsync,
    })?;
    Ok(ExitCode::SUCCESS)
}
