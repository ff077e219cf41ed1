//! `luc bench initial-write`: new files from many clients, as IOzone writes them.

use std::path::PathBuf;
use std::process::ExitCode;

use luc_units::format_duration;
use luc_workload::option_units::{duration_ns, file_size_bytes};
use luc_workload::workers::{Arrivals, ClientKind};
use luc_workload::workloads::initial_write::{
    self, InitialWrite, ThroughputMedian, TimedChildCalls,
};

use super::{Directories, or_interrupted, status, workload_output};

/// Write new files from many clients at once, as IOzone's initial write does
///
/// Each child opens a file of its own and waits for the others. It starts its clock, writes its records and stops its
/// clock. Then it syncs and closes the file. A child counts as blocked if it takes ten times as long as the fastest
/// of its round, or longer.
///
/// The figure "children" is the sum of the children's own rates. The figure "parent" is all bytes over the time from
/// the first start to the last end. The latency "child" is the time on a child's clock.
///
/// This is `iozone -i 0 -t N -x`, with --include fsync,close its -e -c: a finished child does not stop the others.
/// Unlike in IOzone, all children are released at once, and nothing is rewritten. Each round has new files on a
/// journal at rest.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc bench initial-write --dir /mnt/x
  luc bench initial-write --dir /mnt/x --threads 64 --file-size 512k --record-size 128k
  luc bench initial-write --dir /mnt/x --processes --include fsync,close --rounds 10 --json")]
pub(crate) struct Args {
    /// Directory to work in, on the measured file system
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Number of children
    #[arg(long, value_name = "N", default_value_t = 256)]
    threads: usize,
    /// Make children processes instead of threads
    #[arg(long)]
    processes: bool,
    /// Bytes of each file
    #[arg(long, value_name = "SIZE", default_value = "128k")]
    file_size: String,
    /// Bytes of each write
    #[arg(long, value_name = "SIZE", default_value = "32k")]
    record_size: String,
    /// Operations timed besides the writes: fsync, close (after the fsync), or both
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    include: Vec<What>,
    /// Directories that children write in: one for all, or each its own
    #[arg(long, value_enum, value_name = "WHICH", default_value = "one")]
    directories: Directories,
    /// Spread the starts of a round over a time: 16ms, exponential:16ms (its mean), or file:PATH [default: all at
    /// once]
    ///
    /// The time does not depend on the processor's speed. A file has a time on each line.
    #[arg(long, value_name = "SPREAD")]
    arrivals: Option<String>,
    /// Time added for copying each KiB, whatever the processor's speed; 1us is about a GB/s
    ///
    /// It stands for memory that limits copying, and comes on top of the processor's own work.
    #[arg(long, value_name = "TIME", default_value = "0us")]
    copy_per_kib: String,
    /// Number of rounds
    #[arg(long, value_name = "R", default_value_t = 6)]
    rounds: usize,
    /// Seed of the contents
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// UNSAFE: skip every fsync, to see its cost; a power cut then loses everything
    #[arg(long)]
    no_fsync: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    Fsync,
    Close,
}

pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = InitialWrite {
        directory: args.dir.clone(),
        clients: args.threads,
        kind: if args.processes { ClientKind::Process } else { ClientKind::Thread },
        file_size_bytes: file_size_bytes("--file-size", &args.file_size)?,
        record_size_bytes: file_size_bytes("--record-size", &args.record_size)?,
        include: TimedChildCalls {
            fsync: args.include.contains(&What::Fsync),
            close: args.include.contains(&What::Close),
        },
        directory_per_client: args.directories == Directories::Own,
        rounds: args.rounds,
        arrivals: args.arrivals.as_deref().map(Arrivals::parse).transpose()?,
        copy_ns_per_kib: duration_ns("--copy-per-kib", &args.copy_per_kib)?,
        seed: args.seed,
        no_fsync: args.no_fsync,
    };
    let bar = workload_output::WorkloadProgressBar::rounds("initial-write", args.rounds);
    let outcome = initial_write::run(&plan, &mut |done| bar.tick_round(done));
    bar.clear();
    let report = match outcome {
        Ok(report) => report,
        Err(error) => return or_interrupted(error),
    };
    if args.json {
        luc_cli::print_json(&report)?;
        return Ok(status(report.interrupted));
    }
    let included = match report.include {
        TimedChildCalls { close: true, .. } => "write, fsync and close",
        TimedChildCalls { fsync: true, .. } => "write and fsync",
        TimedChildCalls { .. } => "write",
    };
    let head = format!(
        "initial-write: {}, files of {} bytes in records of {}, {} rounds{}, {included} timed, seed {}{}",
        workload_output::clients(report.clients, report.client_kind),
        report.file_size_bytes,
        report.record_size_bytes,
        report.rounds.len(),
        if report.interrupted { " (interrupted)" } else { "" },
        report.seed,
        workload_output::arrivals(report.arrivals.as_ref()) + &copying(report.copy_ns_per_kib)
    );
    let rates = format!(
        "children see {} KiB/s; parent sees {} KiB/s (medians of rounds); {:.1} children are blocked (mean)",
        figure(report.children_kib_per_second),
        figure(report.parent_kib_per_second),
        report.blocked_children
    );
    let head = workload_output::unsafe_if(report.no_fsync, head);
    workload_output::text(&[&head, &rates], &report.operations);
    Ok(status(report.interrupted))
}

/// `; copying a KiB takes 1 us more`, or nothing.
fn copying(ns_per_kib: u64) -> String {
    match ns_per_kib {
        0 => String::new(),
        ns => format!("; copying a KiB takes {} more", format_duration(ns)),
    }
}

fn figure(figure: ThroughputMedian) -> String {
    match (figure.low, figure.high) {
        (Some(low), Some(high)) => format!("{:.0} ({low:.0} to {high:.0})", figure.median),
        _ => format!("{:.0}", figure.median),
    }
}
