//! `luc bench`: workloads that wait for fsync, measured.

mod ack_client;
mod commit;
mod metarates;
mod show;
mod varmail;

use std::path::PathBuf;
use std::process::ExitCode;

use luc_bench::BenchError;
use luc_bench::units::{duration_ns, seconds_ns};
use luc_bench::workers::{ClientKind, Schedule};

/// Measures workloads that wait for fsync
///
/// Each run works in a fresh subdirectory of --dir and removes it at the end, also after Ctrl-C
/// (the figures up to then are printed and the status is 130).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, clap::Subcommand)]
enum Workload {
    Metarates(metarates::Args),
    Varmail(varmail::Args),
    Commit(commit::Args),
    #[command(hide = true)]
    AckClient(ack_client::Args),
}

/// Options that the timed workloads share.
#[derive(Debug, clap::Args)]
struct Common {
    /// Directory to work in, on the file system to be measured
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Length of the measured interval in seconds
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,
    /// Time left out of the figures [default: the longer of 1s and a tenth of --seconds]
    #[arg(long, value_name = "DUR")]
    warmup: Option<String>,
    /// Clients are processes instead of threads
    #[arg(long)]
    processes: bool,
    /// Pause of each client after each round of its loop
    #[arg(long, value_name = "DUR", default_value = "0")]
    think: String,
    /// Seed of everything random; the same seed gives the same operations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

impl Common {
    /// The schedule of `clients` clients.
    fn schedule(&self, clients: usize) -> Result<Schedule, BenchError> {
        let kind = if self.processes {
            ClientKind::Process
        } else {
            ClientKind::Thread
        };
        let warmup_ns = self
            .warmup
            .as_deref()
            .map(|text| duration_ns("--warmup", text))
            .transpose()?;
        Schedule::new(
            clients,
            kind,
            warmup_ns,
            seconds_ns("--seconds", self.seconds)?,
        )
    }

    fn think_ns(&self) -> Result<u64, BenchError> {
        duration_ns("--think", &self.think)
    }
}

/// Runs the subcommand.
pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    luc_bench::interrupt::install()?;
    match args.workload {
        Workload::Metarates(args) => metarates::main(&args),
        Workload::Varmail(args) => varmail::main(&args),
        Workload::Commit(args) => commit::main(&args),
        Workload::AckClient(args) => ack_client::main(args),
    }
}

/// 0, or 130 if the run was interrupted.
fn status(interrupted: bool) -> ExitCode {
    if interrupted {
        ExitCode::from(130)
    } else {
        ExitCode::SUCCESS
    }
}

/// As [`status`] for a run that was interrupted before it had figures; other errors go on.
fn or_interrupted(error: BenchError) -> anyhow::Result<ExitCode> {
    if matches!(error, BenchError::Interrupted) {
        eprintln!("luc: {error}");
        return Ok(ExitCode::from(130));
    }
    Err(error.into())
}
