//! `luc bench overwrite`: writes in place, as to the logs of PostgreSQL and InnoDB.

use std::process::ExitCode;

use luc_workload::latency::LatencyFigures;
use luc_workload::option_units::file_size_bytes;
use luc_workload::workloads::overwrite::{self, Overwrite, OverwriteReport};
use luc_workload::workloads::timed_run::TimedReportHead;

use super::timed_options::{ShownFigures, SyncCallOption, TimedOptions};

/// Overwrite files in place, with fdatasync after each write
///
/// Each client has a file of its own, written as a whole before the measurement. A write then changes only data. So
/// its fdatasync needs a flush of the disk and no commit of the journal. PostgreSQL and InnoDB write their logs this
/// way. Figures: synchronizations per second and the latency of each operation.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc bench overwrite --dir /mnt/x --threads 16
  luc bench overwrite --dir /mnt/x --threads 4 --processes --offsets random --json
  luc bench overwrite --dir /mnt/x --threads 8 --think 1ms --think-distribution exponential
  luc bench overwrite --dir /mnt/x --threads 8 --slow-clients 1 --slow-factor 10 --call fsync")]
pub(crate) struct Args {
    #[command(flatten)]
    common: TimedOptions,
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 16)]
    threads: usize,
    /// Bytes of each client's file
    #[arg(long, value_name = "SIZE", default_value = "16m")]
    file_size: String,
    /// Bytes of each write
    #[arg(long, value_name = "SIZE", default_value = "8k")]
    record_size: String,
    /// Place of a client's next write
    ///
    /// Consecutive: behind its last write, wrapping at the end. Random: at a random multiple of the record size.
    #[arg(long, value_enum, default_value_t = Offsets::Consecutive)]
    offsets: Offsets,
    /// Call that synchronizes
    #[arg(long, value_enum, default_value_t = SyncCallOption::Fdatasync)]
    call: SyncCallOption,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Offsets {
    Consecutive,
    Random,
}

/// Runs the workload and prints its figures.
pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = Overwrite {
        timed: args.common.timed(args.threads)?,
        file_size_bytes: file_size_bytes("--file-size", &args.file_size)?,
        record_size_bytes: file_size_bytes("--record-size", &args.record_size)?,
        offsets: match args.offsets {
            Offsets::Consecutive => overwrite::OverwriteOrder::Consecutive,
            Offsets::Random => overwrite::OverwriteOrder::Random,
        },
        call: args.call.into(),
    };
    args.common.present(&plan.timed, |tick| overwrite::run(&plan, tick))
}

impl ShownFigures for OverwriteReport {
    const NAME: &'static str = "overwrite";

    fn head(&self) -> &TimedReportHead {
        &self.head
    }

    fn rates(&self) -> String {
        format!(
            "{:.1} {}s/s ({}), each after {} bytes written in place",
            self.syncs_per_second,
            self.call.name(),
            self.syncs,
            self.record_size_bytes
        )
    }

    fn operations(&self) -> &[LatencyFigures] {
        &self.operations
    }
}
