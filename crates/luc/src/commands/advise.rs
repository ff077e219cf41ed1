//! `luc advise`: measures a workload on file systems with their options, and names the best.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use luc_advise::{AdviceReport, AdviceRequest, CandidateStorage, ErasableDevice, prepare};
use luc_power::energy;
use luc_sweep::SweepPolicy;
use luc_units::parse_duration_ns;

use super::{INTERRUPTED, own_path, progress_bar};

/// Find the best file system and options for a workload, with the gain and its certainty
///
/// luc measures the workload on every file system that this kernel has and for which a mkfs is installed. Each is
/// tried with mkfs's defaults and with sensible options. Runs are on an emulated disk, made anew for each run (root).
/// With --device they are on a block device of yours, with --on in existing directories.
///
/// Each round has every candidate once, in random order. After 3, 6, 12, ... rounds, candidates shown to be worse
/// than the best are dropped. Measuring ends when the rest is within --goal of the best, after --rounds, or after
/// --time.
///
/// The advice is the best candidate, or the default where nothing is shown to be better. The intervals of the ratios
/// hold jointly with 95 %. Candidates that lose data in a power cut are tried only with --unsafe and never advised.
///
/// With --virtual, every run is in a QEMU guest in virtual time. Its figures are the same for the same seed, however
/// busy this machine is. It needs no root and no file system of this machine's kernel.
///
/// A device is formatted only if --device and --erase name it, nothing uses it, and it is empty. With --overwrite it
/// need not be empty. No other sweep, mkfs or mount gets it meanwhile, and it is empty at the end.
///
/// Every finished run is kept in the --out folder; the same command resumes.
///
/// Exit status: 0 done; 2 the request or the machine does not allow it; 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc advise --workload varmail --disk ssd
  luc advise --workload webserver --set nfiles=500 --disk hdd --only ext4,xfs --time 10m
  luc advise --workload oltp --policy off,auto --only ext4 --options default,fast-commit --unsafe
  luc record --out mail.trace -- ./import-mail.sh && luc advise --workload mail.trace
  luc advise --workload varmail --device /dev/nvme1n1 --erase /dev/nvme1n1
  luc advise --workload my.f --on /srv/a --on /srv/b --json
  luc advise --virtual --workload varmail --disk hdd --only ext4,reiserfs,f2fs

docs/reference/advise.md says what is measured and how sure the answer is.")]
pub(crate) struct Args {
    /// Workload: metarates, varmail, oltp, initial-write, a personality such as webserver, a .f file, or a trace
    ///
    /// Personalities are those of Filebench. Where a built-in workload has the same name, filebench/varmail is the
    /// personality. A .f file is in Filebench's language. A trace is the directory that luc record wrote.
    #[arg(long, value_name = "WORKLOAD")]
    workload: String,
    /// Set an option of a built-in workload or a variable of a personality; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Length of each run in seconds [default: 5, with --virtual 2, or to its end]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Number of clients; for a personality its variable nthreads [default: the workload's own]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Emulate this disk: hdd, ssd, cloud, fixed, or a path ending in .toml
    #[arg(long, value_name = "MODEL", default_value = "ssd", conflicts_with = "on")]
    disk: String,
    /// Size of the emulated disk, such as 4G [default: by the workload's files]
    #[arg(long, value_name = "SIZE", conflicts_with = "on")]
    disk_size: Option<String>,
    /// Measure on this block device; it is formatted for each run and all its data is lost
    #[arg(long, value_name = "DEV", conflicts_with_all = ["disk", "disk_size", "on"])]
    device: Option<PathBuf>,
    /// The same device again, as consent to formatting it
    #[arg(long, value_name = "DEV", requires = "device")]
    erase: Option<PathBuf>,
    /// Format the device even if it has file systems or the like
    #[arg(long, requires = "device")]
    overwrite: bool,
    /// Measure in guests in virtual time: exact on a busy machine, and with another kernel's file systems
    #[arg(long = "virtual", conflicts_with_all = ["on", "device", "idle"])]
    virtual_time: bool,
    /// Distribution kernel of the guests; before 6.13 it has ReiserFS [default: 6.1]
    #[arg(long, value_name = "VERSION", requires = "virtual_time")]
    kernel: Option<String>,
    /// Processors of each guest, run by the QEMU of docs/reference/vm.md [default: 1, by the system's QEMU]
    #[arg(long, value_name = "N", requires = "virtual_time")]
    processors: Option<u32>,
    /// Measure in this directory, on its file system; may be repeated
    #[arg(long, value_name = "DIR")]
    on: Vec<PathBuf>,
    /// Try only these file systems, such as ext4,xfs
    #[arg(long, value_name = "FS", value_delimiter = ',')]
    only: Vec<String>,
    /// Try only these options, such as default,noatime
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    options: Vec<String>,
    /// Policies of the fsync gate: off, auto, or both
    #[arg(long, value_enum, value_delimiter = ',', default_value = "off")]
    policy: Vec<Gate>,
    /// Also try candidates that lose data in a power cut, marked UNSAFE and never advised
    #[arg(long = "unsafe")]
    unsafe_too: bool,
    /// Begin no run after TIME, such as 10m; the same command resumes
    #[arg(long, value_name = "TIME", default_value = "30m")]
    time: String,
    /// Maximum number of rounds of each candidate [default: 24, with --virtual 6]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Difference too small to matter, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    goal: f64,
    /// Seed of the order and of the workload
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Time to measure the idle machine's power, where energy is measured; 0: not at all
    #[arg(long, value_name = "TIME", default_value = "10s")]
    idle: String,
    /// Folder for the results [default: ./NAME.advice for a workload NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the workload as a personality in Filebench's language and measure nothing
    #[arg(long)]
    show_workload: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print one CSV line per candidate
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Root of sysfs; tests give a directory of their own
    #[arg(long, hide = true, default_value = "/sys")]
    sysfs: PathBuf,
}

/// A policy on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Gate {
    /// The program without luc
    Off,
    /// Under luc run --level gate --policy auto
    Auto,
}

/// Minimum number of rounds that allows a comparison.
const MIN_ROUNDS: usize = 3;
/// Default of --rounds. Runs on a machine differ by its noise, runs in guests by their seeds alone.
const DEFAULT_ROUNDS: usize = 24;
const DEFAULT_VIRTUAL_ROUNDS: usize = 6;
/// Default of --kernel: the last distribution kernel with ReiserFS.
const GUEST_KERNEL: &str = "6.1";

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let time = Duration::from_nanos(parse_duration_ns(&args.time).context("--time")?);
    let prepared = prepare(&request(&args)?)?;
    if args.show_workload {
        let text = prepared.text();
        let text =
            text.with_context(|| format!("{}: not in Filebench's language", args.workload))?;
        print!("{text}");
        return Ok(ExitCode::SUCCESS);
    }
    luc_host::interrupt_flag::install()?;
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| PathBuf::from(format!("{}.advice", prepared.name)));
    let luc = own_path()?;
    let bar = progress_bar(1, "{bar:30} run {pos} of {len} or more, {eta} left  {msg}");
    let deadline = begun + time;
    let sweep = luc_sweep::Sweep {
        plan: &prepared.plan,
        out: &out,
        luc: &luc,
        sysfs: &args.sysfs,
        deadline: Some(deadline),
    };
    let report = sweep.run(&mut |made, wanted, what| {
        let left = deadline.saturating_duration_since(Instant::now());
        bar.set_length(wanted as u64);
        bar.set_message(format!("{what}, at most {} s more", left.as_secs()));
        bar.set_position(made as u64);
        if what.is_empty() {
            // Runs of an earlier command say nothing on how long the rest takes.
            bar.reset_eta();
        }
    });
    bar.finish_and_clear();
    let report = report.map_err(luc_advise::AdviseError::from)?;
    let answer = AdviceReport::of(&prepared, &report);
    if args.json {
        luc_cli::print_json(&answer)?;
    } else if args.csv {
        print!("{}", answer.csv());
    } else {
        print!("{answer}");
        println!("results: {}", out.display());
    }
    if answer.interrupted {
        eprintln!("luc: interrupted; the same command goes on from here");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if answer.selection.is_none() && !answer.unfinished {
        let why = answer.not_tried.last().map_or("", |one| one.why.as_str());
        bail!("no candidate could be measured: {why}");
    }
    Ok(ExitCode::SUCCESS)
}

fn request(args: &Args) -> anyhow::Result<AdviceRequest> {
    if !(args.goal > 0.0 && args.goal < 100.0) {
        bail!("--goal {}: write a percentage such as 5", args.goal);
    }
    let most_rounds = args.rounds.unwrap_or(if args.virtual_time {
        DEFAULT_VIRTUAL_ROUNDS
    } else {
        DEFAULT_ROUNDS
    });
    if most_rounds < MIN_ROUNDS {
        bail!("--rounds {most_rounds}: fewer than {MIN_ROUNDS} give no comparison");
    }
    let mut policies = Vec::new();
    for (gate, policy) in [(Gate::Off, SweepPolicy::Off), (Gate::Auto, SweepPolicy::AUTO)] {
        policies.extend(args.policy.contains(&gate).then_some(policy));
    }
    Ok(AdviceRequest {
        workload: args.workload.clone(),
        set: args.set.clone(),
        seconds: args.seconds,
        threads: args.threads,
        place: place(args),
        only: args.only.clone(),
        options: args.options.clone(),
        policies,
        unsafe_too: args.unsafe_too,
        least_rounds: MIN_ROUNDS,
        most_rounds,
        goal: args.goal / 100.0,
        seed: args.seed,
        energy: if args.virtual_time {
            energy::EnergyOptions::default()
        } else {
            energy::EnergyOptions { idle: args.idle.clone(), ..energy::EnergyOptions::default() }
        },
    })
}

fn place(args: &Args) -> CandidateStorage {
    if let Some(device) = &args.device {
        return CandidateStorage::Device(ErasableDevice {
            path: device.clone(),
            erase: args.erase.clone(),
            overwrite: args.overwrite,
            sysfs: args.sysfs.clone(),
        });
    }
    if args.virtual_time {
        let kernel = args.kernel.as_deref().unwrap_or(GUEST_KERNEL);
        return CandidateStorage::Virtual {
            model: args.disk.clone(),
            size: args.disk_size.clone(),
            kernel: kernel.to_owned(),
            processors: args.processors,
        };
    }
    if args.on.is_empty() {
        return CandidateStorage::Disk { model: args.disk.clone(), size: args.disk_size.clone() };
    }
    CandidateStorage::Directories(args.on.clone())
}
