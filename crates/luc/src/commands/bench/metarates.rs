//! `luc bench metarates`: creates files, each with an fsync.

use std::process::ExitCode;

use luc_workload::latency::LatencyFigures;
use luc_workload::option_units::file_size_bytes;
use luc_workload::workers::Arrivals;
use luc_workload::workloads::metarates::{self, Metarates, MetaratesReport};
use luc_workload::workloads::timed_run::TimedReportHead;

use super::Directories;
use super::timed_options::{ShownFigures, TimedOptions};

/// Create files as fast as fsync allows
///
/// Each client creates, syncs and closes file after file. Figures: files created per second; the file creation rate
/// of the papers, N / mean over the N clients of (T_open + T_fsync + T_close); and the latency of each operation.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc bench metarates --dir /mnt/x --threads 16
  luc bench metarates --dir /mnt/x --threads 4 --processes --seconds 30 --json
  luc bench metarates --dir /mnt/x --threads 64 --file-size 1k --think 1ms
  luc bench metarates --dir /mnt/x --threads 16 --file-size 1k --keep 16
  luc bench metarates --dir /mnt/x --threads 4 --rounds 50
  luc bench metarates --dir /mnt/x --threads 4 --rounds 50 --directories own --arrivals 40us")]
pub(crate) struct Args {
    #[command(flatten)]
    common: TimedOptions,
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 16)]
    threads: usize,
    /// Bytes written to each file before its fsync, such as 4k; the original writes none
    #[arg(long, value_name = "SIZE", default_value = "0")]
    file_size: String,
    /// Directories that clients create files in: one for all, as in the original, or each its own
    #[arg(long, value_enum, value_name = "WHICH", default_value = "one")]
    directories: Directories,
    /// After each file, unlink the one that the client made K files before [default: keep all files]
    #[arg(long, value_name = "K", conflicts_with = "rounds", value_parser = clap::value_parser!(u64).range(1..))]
    keep: Option<u64>,
    /// Measure this many rounds instead of --seconds
    ///
    /// In each round all clients start together, on a journal at rest, and create one file each. The papers call this
    /// "N processes, N files".
    #[arg(long, value_name = "R", conflicts_with_all = ["seconds", "warmup", "think", "think_distribution", "slow_clients"])]
    rounds: Option<usize>,
    /// Spread the starts of a round over a time: 40us, exponential:40us (its mean), or file:PATH [default: all at
    /// once]
    ///
    /// The time does not depend on the processor's speed. A file has a time on each line.
    #[arg(long, value_name = "SPREAD", requires = "rounds")]
    arrivals: Option<String>,
}

/// Runs the workload and prints its figures.
pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = Metarates {
        timed: args.common.timed(args.threads)?,
        file_size_bytes: file_size_bytes("--file-size", &args.file_size)?,
        directory_per_client: args.directories == Directories::Own,
        keep: args.keep,
        rounds: args.rounds,
        arrivals: args.arrivals.as_deref().map(Arrivals::parse).transpose()?,
    };
    args.common.present(&plan.timed, |tick| metarates::run(&plan, tick))
}

impl ShownFigures for MetaratesReport {
    const NAME: &'static str = "metarates";

    fn head(&self) -> &TimedReportHead {
        &self.head
    }

    fn rates(&self) -> String {
        let arrivals = super::workload_output::arrivals(self.arrivals.as_ref());
        format!(
            "{:.1} files/s ({} files); file creation rate {:.1}/s = N / mean(T_open + T_fsync + T_close){arrivals}",
            self.creations_per_second, self.creations, self.file_creation_rate_per_second
        )
    }

    fn operations(&self) -> &[LatencyFigures] {
        &self.operations
    }
}
