//! `luc bench oltp`: a database of readers, writers and one log writer.

use std::process::ExitCode;

use luc_workload::latency::LatencyFigures;
use luc_workload::option_units::file_size_bytes;
use luc_workload::workloads::oltp::{self, Oltp, OltpReport, SyncMethod};
use luc_workload::workloads::timed_run::TimedReportHead;

use super::timed_options::{ShownFigures, TimedOptions};

/// Run a database as Filebench's oltp models it: readers, overwriting writers, one log writer
///
/// Reads and writes are small and at random places; a client goes through the files in turn.
///
/// With Filebench's parameters, 200 readers and 10 writers share 10 files of 10m. Writes come in bursts of 100 and
/// are O_SYNC, as Filebench's dsync is. Log writes are of 256k. Semaphores keep both in step with the reads.
///
/// With the LUC paper's parameters, 48 threads overwrite 48 files of 1m, 2k at a time, without waiting. The log
/// writer fsyncs each write of 2k. The other writes are delayed while the journal has their inodes.
///
/// Figures: operations per second, where an fsync belongs to its write, and the latency of each operation.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc bench oltp --dir /mnt/x
  luc bench oltp --dir /mnt/x --parameters luc --seconds 60 --json
  luc bench oltp --dir /mnt/x --readers 20 --writers 4 --log-durability dsync")]
pub(crate) struct Args {
    #[command(flatten)]
    common: TimedOptions,
    /// Set of parameters: Filebench's or the LUC paper's
    #[arg(long, value_enum, default_value_t = Parameters::Filebench)]
    parameters: Parameters,
    /// Number of reading clients [default: 200, with --parameters luc 0]
    #[arg(long, value_name = "N")]
    readers: Option<usize>,
    /// Number of overwriting clients [default: 10, with --parameters luc 48]
    #[arg(long, value_name = "N")]
    writers: Option<usize>,
    /// Number of data files [default: 10, with --parameters luc 48]
    #[arg(long, value_name = "N")]
    files: Option<usize>,
    /// Bytes of each data file [default: 10m, with --parameters luc 1m]
    #[arg(long, value_name = "SIZE")]
    file_size: Option<String>,
    /// Bytes of each read and write [default: 2k]
    #[arg(long, value_name = "SIZE")]
    io_size: Option<String>,
    /// Bytes of each write to the log [default: 256k, with --parameters luc 2k]
    #[arg(long, value_name = "SIZE")]
    log_io_size: Option<String>,
    /// Way to make writes durable [default: sync, with --parameters luc none]
    #[arg(long, value_enum, value_name = "HOW")]
    durability: Option<How>,
    /// Way to make writes to the log durable [default: sync, with --parameters luc fsync]
    #[arg(long, value_enum, value_name = "HOW")]
    log_durability: Option<How>,
    /// Stores to memory after each write or burst, as computing [default: 10000]
    #[arg(long, value_name = "N")]
    write_stores: Option<u64>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Parameters {
    Filebench,
    Luc,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum How {
    /// None: the kernel writes back when it likes
    None,
    /// The file is open with O_DSYNC
    Dsync,
    /// The file is open with O_SYNC
    Sync,
    /// An fsync after each write
    Fsync,
}

impl From<How> for SyncMethod {
    fn from(how: How) -> Self {
        match how {
            How::None => Self::None,
            How::Dsync => Self::Dsync,
            How::Sync => Self::Sync,
            How::Fsync => Self::Fsync,
        }
    }
}

/// Runs the workload and prints its figures.
pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let mut parameters = match args.parameters {
        Parameters::Filebench => oltp::FILEBENCH,
        Parameters::Luc => oltp::LUC,
    };
    let number = |given: Option<usize>, default| given.unwrap_or(default);
    let size = |option: &str, given: &Option<String>, default| match given {
        Some(text) => file_size_bytes(option, text),
        None => Ok(default),
    };
    parameters.readers = number(args.readers, parameters.readers);
    parameters.writers = number(args.writers, parameters.writers);
    parameters.files = number(args.files, parameters.files);
    parameters.file_size_bytes = size("--file-size", &args.file_size, parameters.file_size_bytes)?;
    parameters.io_size_bytes = size("--io-size", &args.io_size, parameters.io_size_bytes)?;
    let log_io = parameters.log_io_size_bytes;
    parameters.log_io_size_bytes = size("--log-io-size", &args.log_io_size, log_io)?;
    if let Some(how) = args.durability {
        parameters.write_durability = how.into();
    }
    if let Some(how) = args.log_durability {
        parameters.log_durability = how.into();
    }
    parameters.write_stores = args.write_stores.unwrap_or(parameters.write_stores);
    let plan = Oltp { timed: args.common.timed(parameters.clients())?, parameters };
    args.common.present(&plan.timed, |tick| oltp::run(&plan, tick))
}

impl ShownFigures for OltpReport {
    const NAME: &'static str = "oltp";

    fn head(&self) -> &TimedReportHead {
        &self.head
    }

    fn title(&self) -> String {
        let parameters = &self.parameters;
        format!(
            "oltp ({} parameters): {} readers, {} writers, 1 log writer, {} files",
            parameters.name, parameters.readers, parameters.writers, parameters.files
        )
    }

    fn rates(&self) -> String {
        format!(
            "{:.1} operations/s ({} operations); {:.1} log writes/s",
            self.flowops_per_second, self.flowops, self.log_writes_per_second
        )
    }

    fn operations(&self) -> &[LatencyFigures] {
        &self.operations
    }
}
