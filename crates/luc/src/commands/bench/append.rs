//! `luc bench append`: logs that grow, as those of etcd and RocksDB.

use std::process::ExitCode;

use luc_workload::latency::LatencyFigures;
use luc_workload::option_units::file_size_bytes;
use luc_workload::workloads::append::{self, Append, AppendReport};
use luc_workload::workloads::timed_run::TimedReportHead;

use super::timed_options::{ShownFigures, SyncCallOption, TimedOptions};

/// Append records to logs, with fdatasync after each
///
/// Each client has a log of its own. A growing log changes its size, so each fdatasync needs a commit of the journal.
/// With --preallocate, fallocate makes the log in advance, as etcd, RocksDB and journald do. Size and blocks then
/// stay. The first write into a block converts its extent from unwritten to written and needs a commit; later writes
/// into it need only a flush. A full log is removed and a new one begun. Figures: synchronizations per second and the
/// latency of each operation.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc bench append --dir /mnt/x --threads 32 --processes
  luc bench append --dir /mnt/x --threads 16 --preallocate 16m --record-size 4k --json
  luc bench append --dir /mnt/x --threads 8 --think 10ms --think-distribution exponential
  luc bench append --dir /mnt/x --threads 8 --slow-clients 1 --slow-factor 10 --call fsync")]
pub(crate) struct Args {
    #[command(flatten)]
    common: TimedOptions,
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 16)]
    threads: usize,
    /// Bytes of each record
    #[arg(long, value_name = "SIZE", default_value = "512")]
    record_size: String,
    /// Allocate each log in advance with this size, such as 16m
    #[arg(long, value_name = "SIZE")]
    preallocate: Option<String>,
    /// Call that synchronizes
    #[arg(long, value_enum, default_value_t = SyncCallOption::Fdatasync)]
    call: SyncCallOption,
}

/// Runs the workload and prints its figures.
pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let preallocate_bytes = args
        .preallocate
        .as_deref()
        .map(|text| file_size_bytes("--preallocate", text))
        .transpose()?;
    let plan = Append {
        timed: args.common.timed(args.threads)?,
        record_size_bytes: file_size_bytes("--record-size", &args.record_size)?,
        preallocate_bytes,
        call: args.call.into(),
    };
    args.common.present(&plan.timed, |tick| append::run(&plan, tick))
}

impl ShownFigures for AppendReport {
    const NAME: &'static str = "append";

    fn head(&self) -> &TimedReportHead {
        &self.head
    }

    fn rates(&self) -> String {
        let into = match self.preallocate_bytes {
            Some(bytes) => format!("logs of {bytes} bytes allocated in advance"),
            None => "logs that grow".to_owned(),
        };
        format!(
            "{:.1} {}s/s ({}), each after {} bytes appended to {into}",
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
