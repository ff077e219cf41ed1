//! `luc bench ranking`: reads or writes one file, to see what sharing a disk costs.

use std::path::PathBuf;
use std::process::ExitCode;

use luc_units::{format_duration, format_size};
use luc_workload::BenchError;
use luc_workload::option_units::{duration_ns, size_bytes};
use luc_workload::workloads::ranking::probe_files::{self, FilePlacement, ProbeFileCreation};
use luc_workload::workloads::ranking::{self, FileUse, ProbePace, RankingProbe, RankingReport};

use super::{or_interrupted, status, workload_output};

/// Read or write a file once, block by block: the probe for disks that tasks share
///
/// It is IO_RANKING(block_size, nops) of the paper on I/O contention. Nothing is read twice. So the block and the
/// pause after each decide how much it asks of the disk. It prints MB/s. With --json it also prints the bytes of each
/// second and how long blocks took. Several at once, each on a cold file of its own, show what it costs to share the
/// disk.
///
/// --create makes the files and drops them from the page cache. With --spread they lie far apart on the disk, in
/// their order. Files of different users come to lie so over the years. Spreading takes the free space of the file
/// system for a moment.
///
/// Exit status: 0 done; 2 a file or an option is wrong, and nothing was touched; 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc bench ranking --create 192M --spread /mnt/x/1 /mnt/x/2 /mnt/x/3 /mnt/x/4
  luc bench ranking /mnt/x/1
  luc bench ranking /mnt/x/1 --cold --block 32 --nops 5000 --json
  luc bench ranking /mnt/x/2 --cold --think 2ms
  luc bench ranking /mnt/x/3 --write
  luc bench ranking /mnt/x/3 --random 1 --block 4K --think 10ms --for 10s --json   # a client and its latencies
  for i in 1 2 3 4; do luc bench ranking --cold /mnt/x/$i & done; wait   # all at once")]
pub(crate) struct Args {
    /// File to use; with --create, files to make
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Make the files, each of this size, such as 192M
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["block", "nops", "think", "write", "random", "cold", "interval", "for_time"])]
    create: Option<String>,
    /// Make the files far apart: at equal distances over the free space
    #[arg(long, requires = "create")]
    spread: bool,
    /// Bytes of a block
    #[arg(long, value_name = "SIZE", default_value = "128K")]
    block: String,
    /// Turns of an empty loop after each block
    #[arg(long, value_name = "N", conflicts_with = "think")]
    nops: Option<u64>,
    /// Sleep after each block, such as 2ms
    #[arg(long, value_name = "DUR")]
    think: Option<String>,
    /// Write the file over in place, then fsync it; only a file that --create made
    #[arg(long)]
    write: bool,
    /// Take the blocks in random order, each once, drawn with this seed
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
    /// Drop the file from the page cache first
    #[arg(long)]
    cold: bool,
    /// End after this time, such as 10s, if the file has not ended before
    #[arg(long = "for", value_name = "DUR")]
    for_time: Option<String>,
    /// Interval of the log of bytes
    #[arg(long, value_name = "DUR", default_value = "1s")]
    interval: String,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// Makes the files, or runs the probe and prints its figures.
pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(size) = &args.create {
        return create(args, size_bytes("--create", size)?);
    }
    let plan = plan(args)?;
    let bar = workload_output::WorkloadProgressBar::rounds("ranking", 100);
    let outcome = ranking::run(&plan, &mut |done| bar.tick_round((done * 100.0) as usize));
    bar.clear();
    let report = match outcome {
        Ok(report) => report,
        Err(error) => return or_interrupted(error),
    };
    if args.json {
        luc_cli::print_json(&report)?;
    } else {
        println!("{}", text(&report));
    }
    if let Some(cached) = report.cached_bytes.filter(|cached| *cached > report.bytes / 100) {
        eprintln!(
            "luc: {cached} bytes of {} were in the page cache and not read from the disk: use --cold",
            report.file.display()
        );
    }
    Ok(status(report.interrupted))
}

fn plan(args: &Args) -> Result<RankingProbe, BenchError> {
    let [file] = args.files.as_slice() else {
        return Err(BenchError::Input {
            option: format!("{} files", args.files.len()),
            reason: "the probe uses one",
            advice: "start it once for each, or add --create SIZE to make them",
        });
    };
    let for_time = args.for_time.as_deref();
    let think = args.think.as_deref();
    let think_ns = think.map(|text| duration_ns("--think", text)).transpose()?;
    Ok(RankingProbe {
        file: file.clone(),
        block_bytes: size_bytes("--block", &args.block)?,
        pace: think_ns.map_or(ProbePace::Nops(args.nops.unwrap_or(0)), ProbePace::Think),
        direction: if args.write { FileUse::Write } else { FileUse::Read },
        random: args.random,
        cold: args.cold,
        interval_ns: duration_ns("--interval", &args.interval)?,
        for_ns: for_time.map(|text| duration_ns("--for", text)).transpose()?,
    })
}

fn create(args: &Args, size_bytes: u64) -> anyhow::Result<ExitCode> {
    let places = probe_files::create(&ProbeFileCreation {
        files: args.files.clone(),
        size_bytes,
        spread: args.spread,
    })?;
    if args.json {
        luc_cli::print_json(&places)?;
        return Ok(ExitCode::SUCCESS);
    }
    for place in &places {
        println!("{}", line(place));
    }
    Ok(ExitCode::SUCCESS)
}

fn line(place: &FilePlacement) -> String {
    let FilePlacement { file, size_bytes, device_offset_bytes, extents } = place;
    let place = match (device_offset_bytes, extents) {
        (Some(offset), Some(1)) => format!("in one piece at {:.1} MB", *offset as f64 / 1e6),
        (Some(offset), Some(pieces)) => {
            format!("in {pieces} pieces from {:.1} MB on", *offset as f64 / 1e6)
        }
        _ => "where the file system does not say".to_owned(),
    };
    format!("{}: {}, {place}", file.display(), format_size(*size_bytes))
}

fn text(report: &RankingReport) -> String {
    let (did, sync) = match report.direction {
        FileUse::Read => ("read", ""),
        FileUse::Write => ("written", " with fsync"),
    };
    let pace = match (report.nops, report.think_us) {
        (0, 0.0) => String::new(),
        (0, us) => format!(", {} of pause after each", format_duration((us * 1e3) as u64)),
        (nops, _) => format!(", {nops} nops after each"),
    };
    let early = if report.interrupted { " (interrupted)" } else { "" };
    let order = report.random.map_or("", |_| " in random order");
    format!(
        "ranking: {} {did} in {:.2} s{early}{sync}, blocks of {}{order}{pace}: {:.1} MB/s",
        format_size(report.bytes),
        report.measured_s,
        format_size(report.block_bytes),
        report.mb_per_second
    )
}
