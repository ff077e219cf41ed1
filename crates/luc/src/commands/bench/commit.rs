//! `luc bench commit`: the time of one commit that serves N files.

use std::path::PathBuf;
use std::process::ExitCode;

use luc_workload::option_units::file_size_bytes;
use luc_workload::workloads::commit::{self, CommitBench, CommitWork, RoundMedian};

use super::{or_interrupted, status, workload_output};

/// Measure one journal commit, or one flush, that serves N files
///
/// Each round creates and writes N files from one thread, starts writeback of all and waits for it. Then it syncs the
/// last file. T_commit(N) is the time of the whole round. Batching N fsyncs per commit can give N / T_commit.
///
/// Other kinds of --work: replace also unlinks the file made 16 rounds before. append lets logs grow. preallocated
/// writes into logs that were allocated in advance. overwrite writes logs in place, so that their fdatasync needs a
/// flush and no commit.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc bench commit --dir /mnt/x --files 16
  luc bench commit --dir /mnt/x --files 16 --work overwrite --file-size 8k
  luc bench commit --dir /mnt/x --files 64 --file-size 4k --rounds 200 --json")]
pub(crate) struct Args {
    /// Directory to work in, on the measured file system
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Number of files per round
    #[arg(long, value_name = "N", default_value_t = 16)]
    files: usize,
    /// Work on each file of a round
    #[arg(long, value_enum, default_value_t = How::Create)]
    work: How,
    /// Number of measured rounds; a tenth as many come first and are left out
    #[arg(long, value_name = "R", default_value_t = 50)]
    rounds: usize,
    /// Bytes written to each file, such as 4k
    #[arg(long, value_name = "SIZE", default_value = "0")]
    file_size: String,
    /// Seed of the contents
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum How {
    Create,
    Replace,
    Append,
    Preallocated,
    Overwrite,
}

impl From<How> for CommitWork {
    fn from(how: How) -> Self {
        match how {
            How::Create => Self::Create,
            How::Replace => Self::Replace,
            How::Append => Self::Append,
            How::Preallocated => Self::Preallocated,
            How::Overwrite => Self::Overwrite,
        }
    }
}

pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = CommitBench {
        directory: args.dir.clone(),
        files: args.files,
        work: args.work.into(),
        rounds: args.rounds,
        file_size_bytes: file_size_bytes("--file-size", &args.file_size)?,
        seed: args.seed,
    };
    let bar = workload_output::WorkloadProgressBar::rounds(
        "commit",
        args.rounds.saturating_add(args.rounds / 10),
    );
    let outcome = commit::run(&plan, &mut |done| bar.tick_round(done));
    bar.clear();
    let report = match outcome {
        Ok(report) => report,
        Err(error) => return or_interrupted(error),
    };
    if args.json {
        luc_cli::print_json(&report)?;
        return Ok(status(report.interrupted));
    }
    println!(
        "commit of {} files of {} bytes: {} rounds{} after {} left out, seed {}\n\
         limit N / T_commit: {:.1} files/s\n",
        report.files,
        report.file_size_bytes,
        report.rounds,
        if report.interrupted { " (interrupted)" } else { "" },
        report.warmup_rounds,
        report.seed,
        report.files_per_second
    );
    println!("{:<18}{:>12}{:>26}", "time, us", "median", "95 % interval");
    for (name, part) in [
        (report.work.begin(), report.create),
        ("start writeback", report.start_writeback),
        ("wait for data", report.wait_writeback),
        ("sync of last", report.fsync),
        ("T_commit, all", report.total),
    ] {
        println!("{name:<18}{:>12.1}{:>26}", part.median_us, interval(&part));
    }
    Ok(status(report.interrupted))
}

fn interval(part: &RoundMedian) -> String {
    match (part.low_us, part.high_us) {
        (Some(low), Some(high)) => format!("{low:.1} to {high:.1}"),
        _ => "needs 6 rounds".to_owned(),
    }
}
