//! `luc bench metarates`.

use std::process::ExitCode;

use luc_bench::units::file_size_bytes;
use luc_bench::workloads::metarates::{self, Metarates};

use super::{Common, or_interrupted, show, status};

/// Creates files as fast as fsync allows: each client creates, syncs and closes file after file
///
/// The figures: files created per second; the file creation rate of the papers, N / mean over the N
/// clients of (T_open + T_fsync + T_close); and the latency of each operation.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc bench metarates --dir /mnt/x --threads 16
  luc bench metarates --dir /mnt/x --threads 4 --processes --seconds 30 --json
  luc bench metarates --dir /mnt/x --threads 64 --file-size 1k --think 1ms")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 16)]
    threads: usize,
    /// Bytes written to each file before its fsync, e.g. 4k; the original writes none
    #[arg(long, value_name = "SIZE", default_value = "0")]
    file_size: String,
    /// Give each client a directory of its own; in the original all share one
    #[arg(long)]
    directory_per_client: bool,
}

/// Runs the workload and prints its figures.
pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = Metarates {
        directory: args.common.dir.clone(),
        schedule: args.common.schedule(args.threads)?,
        file_size_bytes: file_size_bytes("--file-size", &args.file_size)?,
        directory_per_client: args.directory_per_client,
        think_ns: args.common.think_ns()?,
        seed: args.common.seed,
    };
    let bar = show::Bar::new("metarates", &plan.schedule);
    let outcome = metarates::run(&plan, &mut |progress| bar.tick(progress));
    bar.clear();
    let report = match outcome {
        Ok(report) => report,
        Err(error) => return or_interrupted(error),
    };
    if args.common.json {
        show::json(&report)?;
        return Ok(status(report.interrupted));
    }
    let head = format!(
        "metarates: {}, {}, seed {}",
        show::clients(report.clients, report.client_kind),
        show::times(report.measured_s, report.warmup_s, report.interrupted),
        report.seed
    );
    let rates = format!(
        "{:.1} files/s ({} files); file creation rate {:.1}/s = N / mean(T_open + T_fsync + T_close)",
        report.creations_per_second, report.creations, report.file_creation_rate_per_second
    );
    show::text(&[&head, &rates], &report.operations)?;
    Ok(status(report.interrupted))
}
